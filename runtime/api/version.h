#ifndef TIERCEL_RUNTIME_API_VERSION_H_
#define TIERCEL_RUNTIME_API_VERSION_H_

namespace tiercel {

// "0.1.0 (commit 1a2b3c4, Release, avx512vnni)"; static.
const char* VersionText();

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_VERSION_H_
