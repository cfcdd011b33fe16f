#ifndef TIERCEL_KERNELS_DEVICE_FIBRE_H_
#define TIERCEL_KERNELS_DEVICE_FIBRE_H_

#include <setjmp.h>
#include <signal.h>

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"

namespace tiercel {

// A function with a stack of its own, on the thread that resumes it.
// AddressSanitizer knows of it; ThreadSanitizer does not.
class Fibre {
 public:
  explicit Fibre(absl::FunctionRef<void()> body);  // which outlives it
  // A body that is suspended is ended by an exception.
  ~Fibre();
  Fibre(const Fibre&) = delete;

  void Resume();   // until the body suspends itself, or returns
  void Suspend();  // from inside

  // While one lives, on any thread, this process's faults of addresses are
  // caught for Try; where no fibre runs, who had them before has them.
  class Catch {
   public:
    Catch();
    ~Catch();
    Catch(const Catch&) = delete;
  };
  // From inside, while a Catch lives: calls work(), which ends where it stands,
  // without unwinding, when it touches an address where nothing is: returns
  // that address.
  std::optional<const void*> Try(absl::FunctionRef<void()> work);

 private:
  struct Abandoned {};
  boost::context::fiber Run(boost::context::fiber&& caller);
  void Leave();
  void Arrive();
  static void OnBadAddress(int signal, siginfo_t* info, void* context);

  const absl::FunctionRef<void()> body_;
  const boost::context::stack_context stack_;
  boost::context::fiber inside_;
  boost::context::fiber caller_;
  bool abandoned_ = false;
  sigjmp_buf before_ = {};  // what it tries
  const void* bad_address_ = nullptr;

  // What AddressSanitizer wants to know of the two stacks at each switch.
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;
  void* saved_caller_ = nullptr;
  void* saved_ = nullptr;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_FIBRE_H_
