#ifndef TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
#define TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_

#include <string>

namespace tiercel {

// The identity of this build of the library: the linker's build id
// (.note.gnu.build-id, a hash of what it linked) of the program or shared
// object that this function is in, in hexadecimal digits. If it was linked
// without one, "file-" and a hash of its file. Empty if the file cannot be
// read, or is no longer the one that was loaded.
const std::string& BuildIdentity();

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
