# Additions to the rules for a build with CUDA.

if(TIERCEL_SANITIZE OR TIERCEL_FUZZ)
  message(FATAL_ERROR "sanitizers do not go with TIERCEL_CUDA")
endif()

# Machine code for consumer cards since Turing (75, 86, 89, 120), the A100 (80)
# and the H100 (90). The driver compiles the PTX of 90 for other cards.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90 120-real)
endif()
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
if(TIERCEL_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TIERCEL_CCACHE})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()

# As on the CPU, warnings are errors, and a multiply-add is written as one if it
# is meant. Division and roots are IEEE and denormals are kept: these are nvcc's
# defaults. Kernels may call constexpr functions. There is no -Wpedantic, since
# the C++ that nvcc makes for the host is not pedantic.
set(host_warnings -Wall,-Wextra,-Wshadow,-Wconversion,-Wno-sign-conversion)
target_compile_options(
  tiercel_flags
  INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-prec-div=true;-prec-sqrt=true;-ftz=false;--expt-relaxed-constexpr;-Xcompiler=${host_warnings}>"
)
if(TIERCEL_WERROR)
  target_compile_options(
    tiercel_flags
    INTERFACE
      "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
endif()

# Programs open the module that this build makes.
set(TIERCEL_MODULE_FOLDER ${PROJECT_BINARY_DIR}/module)
set(CMAKE_BUILD_RPATH ${TIERCEL_MODULE_FOLDER})
if(TIERCEL_TESTS)
  target_compile_definitions(tiercel_test_flags INTERFACE TIERCEL_CUDA)
endif()

# Builds all tests with cases for a GPU; `ctest -L gpu` runs them.
add_custom_target(tiercel_gpu_tests)
