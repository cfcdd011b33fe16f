#ifndef TIERCEL_RUNTIME_RATES_CACHE_H_
#define TIERCEL_RUNTIME_RATES_CACHE_H_

#include <optional>
#include <string>

#include "runtime/rates.h"

namespace tiercel {

// Rates that former runs measured: a small file for each `key`, which names the
// machine, the model's shape and all else that they depend on. Nothing is lost
// with the folder but the second that measuring takes.

// Absent where there is no such file, it is not whole, or it is older than a
// week.
std::optional<Rates> ReadRates(const std::string& folder,
                               const std::string& key);

// Makes the folder where it is missing. What cannot be written is not kept.
void KeepRates(const std::string& folder, const std::string& key,
               const Rates& rates);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_RATES_CACHE_H_
