# Build rules shared by every folder.
#
#   tiercel_library(name SOURCES... [DEPS ...])   one layer's static library
#   tiercel_op(name [CPU] [CUDA])                 one kernel op, see below
#   tiercel_test(path/to/foo_test.cc [GPU] [DEPS ...])
#                                                 one GoogleTest program
#   tiercel_check_tests_registered()              stops on a forgotten test

enable_testing()
add_custom_target(tiercel_sanitized_tests)
find_program(TIERCEL_CCACHE ccache)
if(TIERCEL_CCACHE)
  # The sloppiness lets it cache what uses a precompiled header, the base
  # directory what another clone compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${TIERCEL_CCACHE})
  add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fpch-preprocess>)
endif()

# Warnings are errors. -ffp-contract=off: a multiply-add is written as one where
# it is meant (invariant 6 counts on every rounding).
add_library(tiercel_flags INTERFACE)
set(TIERCEL_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                     -Wno-sign-conversion)
if(TIERCEL_WERROR)
  list(APPEND TIERCEL_WARNINGS -Werror)
endif()
target_compile_options(
  tiercel_flags
  INTERFACE
    "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${TIERCEL_WARNINGS};-ffp-contract=off>"
)
target_include_directories(tiercel_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(TIERCEL_SANITIZE)
  target_compile_options(
    tiercel_flags INTERFACE -fsanitize=${TIERCEL_SANITIZE}
                            -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tiercel_flags INTERFACE -fsanitize=${TIERCEL_SANITIZE})
endif()
if(TIERCEL_FUZZ)
  target_compile_options(
    tiercel_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                            -fno-sanitize-recover=all)
  target_link_options(tiercel_flags INTERFACE -fsanitize=address,undefined)
endif()

function(tiercel_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tiercel_flags ${ARG_DEPS})
endfunction()

# One instruction-set level is one namespace and one set of flags; op_cpu.cc is
# compiled once per level and kernels/base/isa.h picks at run time.
set(TIERCEL_ISAS portable avx2 avx512 avx512vnni)
set(TIERCEL_FLAGS_portable "")
set(TIERCEL_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TIERCEL_FLAGS_avx512 ${TIERCEL_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq
                         -mavx512vl -mprefer-vector-width=512)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the undefined operand inside its own AVX-512 intrinsics for an
  # uninitialized variable (GCC bug 105593).
  list(APPEND TIERCEL_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(TIERCEL_FLAGS_avx512vnni ${TIERCEL_FLAGS_avx512} -mavx512vnni
                             -mavx512bf16)

# What bodies are not checked for, after tiercel_flags: the last option counts.
add_library(tiercel_isa_flags INTERFACE)
if(TIERCEL_SANITIZE)
  # UBSan's checks of every pointer make a body take minutes to compile;
  # AddressSanitizer still sees each access.
  target_compile_options(
    tiercel_isa_flags
    INTERFACE -fno-sanitize=alignment,null,pointer-overflow,object-size,vptr)
elseif(TIERCEL_FUZZ)
  # No parser comes here.
  target_compile_options(tiercel_isa_flags INTERFACE -fno-sanitize=all)
endif()

# Adds the op `folder/name` to tiercel_kernels: name.h (contract), name.cc (the
# one entry), name_ref.cc (plain loops); with CPU, name_cpu.cc per level; with
# CUDA, name.cu where the build has CUDA.
function(tiercel_op path)
  cmake_parse_arguments(ARG "CPU;CUDA" "" "" ${ARGN})
  foreach(suffix .h .cc _ref.cc _test.cc)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path}${suffix})
      message(FATAL_ERROR "op ${path} has no ${path}${suffix}")
    endif()
  endforeach()
  target_sources(tiercel_kernels PRIVATE ${path}.cc ${path}_ref.cc)
  if(ARG_CPU)
    tiercel_isa_bodies(${path})
  endif()
  set(gpu "")
  if(ARG_CUDA)
    set(gpu GPU)
    if(TIERCEL_CUDA)
      target_sources(tiercel_kernels PRIVATE ${path}.cu)
    endif()
  endif()
  tiercel_test(${path}_test.cc ${gpu} DEPS tiercel_kernels)
endfunction()

# Compiles path_cpu.cc once per level into TARGET (tiercel_kernels).
function(tiercel_isa_bodies path)
  cmake_parse_arguments(ARG "" "TARGET" "" ${ARGN})
  if(NOT ARG_TARGET)
    set(ARG_TARGET tiercel_kernels)
  endif()
  string(REPLACE "/" "_" flat ${path})
  foreach(isa ${TIERCEL_ISAS})
    set(object tiercel_${flat}_${isa})
    add_library(${object} OBJECT ${path}_cpu.cc)
    target_link_libraries(${object} PRIVATE tiercel_flags tiercel_isa_flags)
    target_compile_options(${object} PRIVATE ${TIERCEL_FLAGS_${isa}})
    target_compile_definitions(${object} PRIVATE TIERCEL_ISA_NS=${isa})
    target_sources(${ARG_TARGET} PRIVATE $<TARGET_OBJECTS:${object}>)
    set_property(GLOBAL APPEND PROPERTY TIERCEL_ISA_OBJECTS
                                        $<TARGET_OBJECTS:${object}>)
  endforeach()
endfunction()

# Tests are half of what is compiled and little of what runs: they are not
# optimised, UBSan looks at what they test alone, and GoogleTest's headers are
# read once.
set(TIERCEL_TEST_FLAGS -O0)
if(TIERCEL_SANITIZE MATCHES undefined)
  list(APPEND TIERCEL_TEST_FLAGS -fno-sanitize=undefined)
endif()
file(CONFIGURE OUTPUT test_headers.cc CONTENT "int main() {}\n")
add_executable(tiercel_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
target_link_libraries(tiercel_test_headers PRIVATE tiercel_flags GTest::gtest
                                                   GTest::gmock)
target_compile_options(tiercel_test_headers PRIVATE ${TIERCEL_TEST_FLAGS})
target_compile_definitions(
  tiercel_test_headers PRIVATE TIERCEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_precompile_headers(tiercel_test_headers PRIVATE <gmock/gmock.h>
                          <gtest/gtest.h> <absl/status/statusor.h>)

function(tiercel_test source)
  cmake_parse_arguments(ARG "GPU" "" "DEPS" ${ARGN})
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE full)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${full})
  string(REGEX REPLACE "[/.]" "_" name ${relative})
  string(REGEX REPLACE "_cc$" "" name ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest
                                        GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${TIERCEL_TEST_FLAGS})
  target_compile_definitions(
    ${name} PRIVATE TIERCEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_precompile_headers(${name} REUSE_FROM tiercel_test_headers)
  add_test(NAME ${relative} COMMAND ${name})
  # A refused allocation is a case to test, not a finding.
  set_tests_properties(${relative} PROPERTIES ENVIRONMENT
                       ASAN_OPTIONS=allocator_may_return_null=1)
  set_property(GLOBAL APPEND PROPERTY TIERCEL_TESTS ${relative})
  # Parsers and ops: what test.sh also runs under the sanitizers.
  if(relative MATCHES "^(kernels|models|apps/document)/")
    set_tests_properties(${relative} PROPERTIES LABELS sanitized)
    add_dependencies(tiercel_sanitized_tests ${name})
  endif()
  if(ARG_GPU AND TIERCEL_CUDA)
    set_property(TEST ${relative} APPEND PROPERTY LABELS gpu)
    add_dependencies(tiercel_gpu_tests ${name})
  endif()
endfunction()

function(tiercel_check_tests_registered)
  file(GLOB_RECURSE on_disk RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/*_test.cc)
  list(FILTER on_disk EXCLUDE REGEX "^build/")
  if(TIERCEL_KERNELS_ONLY)
    list(FILTER on_disk INCLUDE REGEX "^kernels/")
  endif()
  get_property(registered GLOBAL PROPERTY TIERCEL_TESTS)
  foreach(test ${on_disk})
    if(NOT test IN_LIST registered)
      message(FATAL_ERROR "${test} is on disk but not registered")
    endif()
  endforeach()
endfunction()
