#include "kernels/system/thread.h"

#include <pthread.h>

#include <cfenv>
#include <system_error>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/system/signals_for_test.h"

namespace tiercel {
namespace {

TEST(ThreadTest, ItTakesFaultsAndNoOtherSignals) {
  bool signals = true;
  bool faults = false;
  StartThread([&] {
    signals = TakesSignals();
    faults = TakesFaults();
  }).join();
  EXPECT_FALSE(signals);
  EXPECT_TRUE(faults);
  EXPECT_TRUE(TakesSignals());  // the program's own threads do
}

TEST(ThreadTest, ItRoundsToNearestWhateverTheCallerDoes) {
  std::fesetround(FE_UPWARD);
  int rounds = FE_UPWARD;
  StartThread([&] { rounds = std::fegetround(); }).join();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounds, FE_TONEAREST);
}

// Signals that the caller's thread blocks are still blocked afterwards.
TEST(ThreadTest, TheCallersMaskStays) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &usr1, &before);
  StartThread([] {}).join();
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&after, SIGUSR2), 0);
}

TEST(ThreadTest, AThreadThatIsRefusedChangesNothing) {
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(StartThread([] {}), std::system_error);
  EXPECT_TRUE(TakesSignals());
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&before);
}

}  // namespace
}  // namespace tiercel
