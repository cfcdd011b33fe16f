# Writes HEADER, with a checksum of all sources in FOLDER from which kernels are
# compiled.
file(GLOB_RECURSE sources RELATIVE ${FOLDER} ${FOLDER}/*.h ${FOLDER}/*.cu)
list(SORT sources)
set(sums "")
foreach(source ${sources})
  file(SHA256 ${FOLDER}/${source} sum)
  string(APPEND sums "${source} ${sum}\n")
endforeach()
string(SHA256 sum "${sums}")
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "\
#ifndef TIERCEL_KERNELS_DEVICE_KERNELS_SUM_H_
#define TIERCEL_KERNELS_DEVICE_KERNELS_SUM_H_

namespace tiercel {

inline constexpr char kKernelsSum[] = \"${sum}\";

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_KERNELS_SUM_H_
")
