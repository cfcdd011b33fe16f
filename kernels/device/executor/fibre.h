#ifndef TIERCEL_KERNELS_DEVICE_EXECUTOR_FIBRE_H_
#define TIERCEL_KERNELS_DEVICE_EXECUTOR_FIBRE_H_

#include <setjmp.h>
#include <signal.h>

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"

namespace tiercel {

// A function with a stack of its own, which runs on the thread that resumes it.
// AddressSanitizer is notified of its switches; ThreadSanitizer is not.
class Fibre {
 public:
  explicit Fibre(absl::FunctionRef<void()> body);  // must outlive the fibre
  // Ends a suspended body by an exception.
  ~Fibre();
  Fibre(const Fibre&) = delete;

  void Resume();   // runs the body until it suspends itself or returns
  void Suspend();  // called from inside

  // While one lives, on any thread, this process catches address faults for
  // Try. If no fibre runs, the former signal action gets them.
  class Catch {
   public:
    Catch();
    ~Catch();
    Catch(const Catch&) = delete;
  };
  // Calls work(), from inside and while a Catch lives. If it touches an invalid
  // address, it ends there without unwinding, and Try returns that address.
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
  sigjmp_buf before_ = {};  // the state before work() in Try
  const void* bad_address_ = nullptr;

  // AddressSanitizer is given the two stacks at each switch.
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;
  void* saved_caller_ = nullptr;
  void* saved_ = nullptr;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_EXECUTOR_FIBRE_H_
