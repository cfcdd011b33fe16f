#ifndef TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
#define TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_

#include <string>

namespace tiercel {

// What tells this build of the library from any other: the linker's build id
// (.note.gnu.build-id, a hash of what it linked) of the program or shared
// object that this function is in, in hexadecimal digits. Where that was linked
// without one, "file-" and a hash of its file. Empty where that cannot be read,
// or is no longer what was loaded.
const std::string& BuildIdentity();

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
