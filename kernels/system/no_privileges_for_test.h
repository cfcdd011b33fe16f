#ifndef TIERCEL_KERNELS_SYSTEM_NO_PRIVILEGES_FOR_TEST_H_
#define TIERCEL_KERNELS_SYSTEM_NO_PRIVILEGES_FOR_TEST_H_

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace tiercel {

// While it lives, the calling thread has the rights of an ordinary user: files
// can be unreadable and limits hold even for root.
class NoPrivileges {
 public:
  NoPrivileges() {
    EXPECT_EQ(syscall(SYS_capget, &header_, had_), 0);
    __user_cap_data_struct none[2] = {had_[0], had_[1]};
    none[0].effective = none[1].effective = 0;
    EXPECT_EQ(syscall(SYS_capset, &header_, none), 0);
  }
  ~NoPrivileges() { EXPECT_EQ(syscall(SYS_capset, &header_, had_), 0); }
  NoPrivileges(const NoPrivileges&) = delete;
  NoPrivileges& operator=(const NoPrivileges&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct had_[2] = {};
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_NO_PRIVILEGES_FOR_TEST_H_
