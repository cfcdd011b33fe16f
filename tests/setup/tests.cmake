# Rules for tests.
#
#   tiercel_test(path/to/foo_test.cc [ALONE | PROGRAM name] [GPU] [DEPS ...])
#                                        one file of GoogleTest cases
#   tiercel_script_test(foo_test.py [COST n] [ARGS ...])
#                                        a Python script that fails or not
#   tiercel_check_tests_registered()     stops on a forgotten test

# Tests are half of the code to compile and little of the code that runs: they
# are not optimised, UBSan checks only the code that they test, and GoogleTest's
# headers are compiled once.
add_library(tiercel_test_flags INTERFACE)
target_link_libraries(tiercel_test_flags INTERFACE tiercel_flags)
target_compile_options(tiercel_test_flags INTERFACE -O0 -g0)
if(TIERCEL_SANITIZE)
  target_compile_definitions(tiercel_test_flags INTERFACE TIERCEL_SANITIZED)
endif()
if(TIERCEL_SANITIZE MATCHES undefined)
  target_compile_options(tiercel_test_flags INTERFACE -fno-sanitize=undefined)
endif()
# This is a program, as tests are: libraries have other options.
file(CONFIGURE OUTPUT test_headers.cc CONTENT "int main() {}\n")
add_executable(tiercel_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
target_link_libraries(tiercel_test_headers
                      PRIVATE tiercel_flags tiercel_test_flags GTest::gtest
                              GTest::gmock)
target_precompile_headers(tiercel_test_headers PRIVATE <gmock/gmock.h>
                          <gtest/gtest.h> <absl/status/statusor.h>
                          <nlohmann/json.hpp>)

# The longest tests run first, so that no core waits for one at the end. ctest
# learns their times by itself, but not before its second run.
set(TIERCEL_FIRST_TESTS
    tests/hosted_faults_test.cc
    tests/hosted_test.cc
    runtime/session/batch_ranks_test.cc
    tests/hosted_ranks_test.cc
    kernels/attention/attention_test.cc
    kernels/attention/attention_view_test.cc
    kernels/layer/matmul_test.cc
    models/tokenizer/golden_test.cc
    runtime/session/tiers_test.cc
    offload/retrieval/retrieval_test.cc
    kernels/kv/kv_write_test.cc
    kernels/layer/packed_matrix_test.cc
    runtime/policies/triforce/triforce_distribution_test.cc
    runtime/session/ranks_test.cc
    kernels/select/key_scores_test.cc
    runtime/session/unfinished_prompt_test.cc
    runtime/session/prompt_cache_test.cc)

# These take half of the time of all: matrices of cases of which other tests have
# the first few, random trials, and faults at every place. test.sh leaves them to
# full.sh.
set(TIERCEL_LONG_TESTS
    apps/cli_bench_test.py
    apps/cli_prompt_cache_test.py
    apps/cli_rates_test.py
    apps/cli_reading_test.py
    apps/cli_saved_test.py
    bench/checkpoints_test.py
    runtime/api/out_of_memory_test.cc
    runtime/session/faults_test.cc
    runtime/session/unfinished_prompt_test.cc
    tests/folder_trial.py
    tests/hosted_faults_test.cc
    tests/hosted_ranks_test.cc
    tests/same_bytes.py
    tests/session_trial_test.cc
    tests/text_trial.py)

# Labels `test` if it is one of these.
function(tiercel_label_long test)
  if(test IN_LIST TIERCEL_LONG_TESTS)
    set_property(TEST ${test} APPEND PROPERTY LABELS long)
  endif()
endfunction()

# The files of one folder are one program. ALONE makes a file a program of its
# own, if it replaces malloc, say, or links less of Tiercel; PROGRAM names one
# that several files share. Each file is a test of ctest by its path, and a target
# by its path too: kernels_layer_rope_test builds the program that contains it.
add_library(tiercel_test_main OBJECT tests/setup/test_main.cc)
target_link_libraries(tiercel_test_main PRIVATE tiercel_flags tiercel_test_flags
                                                GTest::gtest GTest::gmock)
target_compile_definitions(
  tiercel_test_main PRIVATE TIERCEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_library(tiercel_test_draws OBJECT tests/setup/draws.cc)
target_link_libraries(tiercel_test_draws PRIVATE tiercel_flags)

function(tiercel_test source)
  cmake_parse_arguments(ARG "ALONE;GPU" "PROGRAM" "DEPS" ${ARGN})
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE full)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${full})
  string(REGEX REPLACE "[/.]" "_" name ${relative})
  string(REGEX REPLACE "_cc$" "" name ${name})
  if(ARG_ALONE)
    set(program ${name}s)
  elseif(ARG_PROGRAM)
    set(program ${ARG_PROGRAM})
  else()
    cmake_path(GET relative PARENT_PATH folder)
    # All folders of the runtime are one program, which takes long to link, not
    # to run.
    string(REGEX REPLACE "^runtime/.*" "runtime" folder ${folder})
    string(REGEX REPLACE "^apps/(cli|terminal|commands|serve)$" "apps" folder
                         ${folder})
    string(REPLACE "/" "_" program ${folder}_tests)
  endif()
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(
      ${program} PRIVATE tiercel_flags tiercel_test_flags tiercel_test_main
                         tiercel_test_draws GTest::gtest GTest::gmock)
    target_precompile_headers(${program} REUSE_FROM tiercel_test_headers)
    tiercel_compile_together(${program})
  endif()
  target_sources(${program} PRIVATE ${source})
  target_link_libraries(${program} PRIVATE ${ARG_DEPS})
  add_custom_target(${name} DEPENDS ${program})
  add_test(NAME ${relative} COMMAND ${program} ${relative})
  # A refused allocation is a case of a test, not a finding.
  set(refusing allocator_may_return_null=1)
  set_tests_properties(
    ${relative} PROPERTIES ENVIRONMENT
                           "ASAN_OPTIONS=${refusing};TSAN_OPTIONS=${refusing}")
  set_property(GLOBAL APPEND PROPERTY TIERCEL_TESTS ${relative})
  list(FIND TIERCEL_FIRST_TESTS ${relative} place)
  if(NOT place EQUAL -1)
    math(EXPR cost "100 - ${place}")
    set_tests_properties(${relative} PROPERTIES COST ${cost})
  endif()
  tiercel_label_long(${relative})
  if(ARG_GPU AND TIERCEL_CUDA)
    set_property(TEST ${relative} APPEND PROPERTY LABELS gpu)
    add_dependencies(tiercel_gpu_tests ${program})
  endif()
endfunction()

function(tiercel_script_test source)
  cmake_parse_arguments(ARG "" "COST" "ARGS" ${ARGN})
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE full)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${full})
  add_test(NAME ${relative} COMMAND Python3::Interpreter -B ${full} ${ARG_ARGS})
  if(ARG_COST)
    set_tests_properties(${relative} PROPERTIES COST ${ARG_COST})
  endif()
  tiercel_label_long(${relative})
endfunction()

function(tiercel_check_tests_registered)
  file(GLOB_RECURSE on_disk RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/*_test.cc)
  list(FILTER on_disk EXCLUDE REGEX "^build/")
  if(NOT TIERCEL_HOSTED)
    list(FILTER on_disk EXCLUDE REGEX
         "^(kernels/(device/(executor/|matrix_step_)|attention/(refused|flash_attention)_|layer/(matmul_blas|fast_matmul)_)|offload/(move/gpu|move/pinned|ranks/nccl)_|tests/hosted_)")
  endif()
  get_property(registered GLOBAL PROPERTY TIERCEL_TESTS)
  foreach(test ${on_disk})
    if(NOT test IN_LIST registered)
      message(FATAL_ERROR "${test} is on disk but not registered")
    endif()
  endforeach()
endfunction()
