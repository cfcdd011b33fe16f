#ifndef TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
#define TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_

#include <string>

namespace tiercel {

// What tells this build of the library from any other: the linker's build id
// (.note.gnu.build-id, a hash of what it linked) of the program or shared
// object that this function is in, in hexadecimal digits. Empty where it was
// linked without one.
std::string BuildIdentity();

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BUILD_IDENTITY_H_
