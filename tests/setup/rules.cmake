# Build rules shared by every folder.
#
#   tiercel_library(name SOURCES... [DEPS ...])   one layer's static library
#   tiercel_op(name [CPU] [CUDA])                 one kernel op, see below
#   tiercel_test(...), tiercel_script_test(...)   see tests.cmake

find_program(TIERCEL_CCACHE ccache)
if(TIERCEL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets it cache files with a precompiled header, the base
  # directory share the cache with other clones.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${TIERCEL_CCACHE})
  add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fpch-preprocess>)
endif()

# -ffp-contract=off: a multiply-add is written as one if it
# is meant (row invariance depends on every rounding). Of two options that
# differ the last counts, so a library that changes one of these is linked after
# tiercel_flags.
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
# CMake's Release has -O3, which takes longer to compile and helps only kernels
# of vectors; the command line, which waits for its user and for the library, is
# as fast by -O1. A project that names no kind of build gets a fast library, too.
set(TIERCEL_RELEASE
    $<$<AND:$<CONFIG:,Release>,$<COMPILE_LANGUAGE:C,CXX>>:)
target_compile_options(tiercel_flags INTERFACE ${TIERCEL_RELEASE}-O2>)
add_library(tiercel_kernel_flags INTERFACE)
target_compile_options(tiercel_kernel_flags INTERFACE ${TIERCEL_RELEASE}-O3>)
add_library(tiercel_app_flags INTERFACE)
target_compile_options(tiercel_app_flags INTERFACE ${TIERCEL_RELEASE}-O1>)
if(TIERCEL_SANITIZE)
  target_compile_options(
    tiercel_flags INTERFACE -fsanitize=${TIERCEL_SANITIZE}
                            -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tiercel_flags INTERFACE -fsanitize=${TIERCEL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In instrumented code g++ takes initialized variables for uninitialized.
    target_compile_options(tiercel_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  # UBSan's checks of every pointer double the code to compile. They are left
  # out if AddressSanitizer, whose own checks are calls, sees each access; the
  # preset ubsan has them.
  if(TIERCEL_SANITIZE MATCHES address)
    target_compile_options(
      tiercel_flags
      INTERFACE -fno-sanitize=alignment,null,pointer-overflow,object-size,vptr
                --param=asan-instrumentation-with-call-threshold=0)
  endif()
endif()
if(TIERCEL_FUZZ)
  target_compile_options(
    tiercel_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                            -fno-sanitize-recover=all)
  target_link_options(tiercel_flags INTERFACE -fsanitize=address,undefined)
endif()

# With TIERCEL_UNITY, compiles the files of `target` as a few large ones: of any
# target, or of TESTS.
function(tiercel_compile_together target)
  set(together ON)
  if(TIERCEL_UNITY STREQUAL "OFF")
    set(together OFF)
  endif()
  set(files 14)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # Tests are hardly more than their headers: together they take half as long.
    set(files 42)
  elseif(TIERCEL_UNITY STREQUAL "TESTS")
    set(together OFF)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${together}
                                             UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# The headers that most files of a library include, compiled once for all
# libraries: with and without JSON, which alone takes half as long as all
# others.
file(CONFIGURE OUTPUT headers.cc CONTENT "")
foreach(headers tiercel_headers tiercel_json_headers)
  add_library(${headers} OBJECT EXCLUDE_FROM_ALL
              ${PROJECT_BINARY_DIR}/headers.cc)
  target_link_libraries(${headers} PRIVATE tiercel_flags)
  target_precompile_headers(${headers} PRIVATE <absl/status/statusor.h>
                            <absl/strings/str_cat.h>)
endforeach()
target_precompile_headers(tiercel_json_headers PRIVATE <nlohmann/json.hpp>)

# Adds a library. JSON: most of its files include nlohmann/json.hpp.
function(tiercel_library name)
  cmake_parse_arguments(ARG "JSON" "" "DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tiercel_flags ${ARG_DEPS})
  tiercel_compile_together(${name})
  if(ARG_JSON)
    target_precompile_headers(${name} REUSE_FROM tiercel_json_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM tiercel_headers)
  endif()
endfunction()

# Each ISA has one namespace and one set of flags; op_cpu.cc is compiled once
# per ISA and kernels/system/isa.h picks one at run time.
set(TIERCEL_ISAS portable avx2 avx512 avx512vnni)
set(TIERCEL_BYTE_ISAS ${TIERCEL_ISAS} avxvnni) # where bytes are multiplied
set(TIERCEL_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TIERCEL_FLAGS_avxvnni ${TIERCEL_FLAGS_avx2} -mavxvnni)
set(TIERCEL_FLAGS_avx512 ${TIERCEL_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq
                         -mavx512vl -mprefer-vector-width=512)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the undefined operand inside its own AVX-512 intrinsics for an
  # uninitialized variable (GCC bug 105593).
  list(APPEND TIERCEL_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(TIERCEL_FLAGS_avx512vnni ${TIERCEL_FLAGS_avx512} -mavx512vnni
                             -mavx512bf16)

add_library(tiercel_isa_flags INTERFACE)
if(TIERCEL_FUZZ)
  # These objects contain no parser.
  target_compile_options(tiercel_isa_flags INTERFACE -fno-sanitize=all)
endif()

# Adds the op `folder/name` to tiercel_kernels: name.h (contract), name.cc (the
# one entry, and plain loops, unless these are in name_ref.cc); with CPU,
# name_cpu.cc per ISA (all of them, or ISAS); with CUDA, name.cu, which becomes
# part of the module, or of programs for tests.
function(tiercel_op path)
  cmake_parse_arguments(ARG "CPU;CUDA" "" "ISAS" ${ARGN})
  foreach(suffix .h .cc _test.cc)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path}${suffix})
      message(FATAL_ERROR "op ${path} has no ${path}${suffix}")
    endif()
  endforeach()
  target_sources(tiercel_kernels PRIVATE ${path}.cc)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path}_ref.cc)
    target_sources(tiercel_kernels PRIVATE ${path}_ref.cc)
  endif()
  if(ARG_CPU)
    tiercel_isa_bodies(${path} ISAS ${ARG_ISAS})
  endif()
  set(gpu "")
  if(ARG_CUDA)
    set(gpu GPU)
    set_property(GLOBAL APPEND PROPERTY TIERCEL_GPU_KERNELS ${path}.cu)
  endif()
  tiercel_test(${path}_test.cc ${gpu} DEPS ${TIERCEL_TESTED_KERNELS})
endfunction()

# Compiles path_cpu.cc once for each ISA of ISAS (default: all) into TARGET
# (default: tiercel_kernels).
function(tiercel_isa_bodies path)
  cmake_parse_arguments(ARG "" "TARGET" "ISAS" ${ARGN})
  if(NOT ARG_TARGET)
    set(ARG_TARGET tiercel_kernels)
  endif()
  if(NOT ARG_ISAS)
    set(ARG_ISAS ${TIERCEL_ISAS})
  endif()
  string(REPLACE "/" "_" flat ${path})
  foreach(isa ${ARG_ISAS})
    set(object tiercel_${flat}_${isa})
    add_library(${object} OBJECT ${path}_cpu.cc)
    target_link_libraries(${object} PRIVATE tiercel_flags tiercel_isa_flags)
    # -O3 takes twice as long to compile vectors that are short loops.
    if(NOT isa STREQUAL "portable")
      target_link_libraries(${object} PRIVATE tiercel_kernel_flags)
    endif()
    target_compile_options(${object} PRIVATE ${TIERCEL_FLAGS_${isa}})
    target_compile_definitions(${object} PRIVATE TIERCEL_ISA_NS=${isa})
    target_sources(${ARG_TARGET} PRIVATE $<TARGET_OBJECTS:${object}>)
    set_property(GLOBAL APPEND PROPERTY TIERCEL_ISA_OBJECTS
                                        $<TARGET_OBJECTS:${object}>)
  endforeach()
endfunction()

if(TIERCEL_TESTS)
  include(${CMAKE_CURRENT_LIST_DIR}/tests.cmake)
else()
  function(tiercel_test)
  endfunction()
  function(tiercel_script_test)
  endfunction()
endif()
