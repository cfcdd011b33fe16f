// A shared object that is linked without a build id. Its two builds differ in
// one number, which a program may write.

#include "runtime/api/build_identity.h"

double number_for_tests = TIERCEL_NUMBER;

extern "C" __attribute__((visibility("default"))) const char*
IdentityForTests() {
  return tiercel::BuildIdentity().c_str();
}

extern "C" __attribute__((visibility("default"))) double* NumberForTests() {
  return &number_for_tests;
}
