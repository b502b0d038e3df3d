// Kernels one behind the other, added up without a program: what each takes by the cost model, and
// what decided it.
#pragma once

#include <string_view>

#include "model/cost/work.h"
#include "model/hardware/profile.h"

namespace spillway {

/// rows x depth by depth x width, `matrices` of them that share the rows evenly.
struct ProductSize {
  double rows = 0, depth = 0, width = 0, matrices = 1;
};

/// Fused attention over `pairs` of a query and a key each head looks at.
struct AttentionSize {
  double pairs = 0, heads = 0;
  double head_dim = 0, value_dim = 0;
  double bytes =
      0;  ///< read and written: queries, keys, values, result, of backward their gradients
};

struct KernelSum {
  Seconds time;       ///< gaps between kernels among it
  Seconds by_memory;  ///< of that, kernels that HBM's bandwidth bounds

  KernelSum& operator+=(const KernelSum& other) {
    time += other.time;
    by_memory += other.by_memory;
    return *this;
  }
  KernelSum& operator*=(double times) {
    time = time * times;
    by_memory = by_memory * times;
    return *this;
  }
};

/// `type` is that of the operands: "bf16". Reads two bytes an element, one of eight-bit types.
KernelSum product_kernel(const ProductSize& size, std::string_view type,
                         const HardwareProfile& profile);
KernelSum attention_kernel(const AttentionSize& size, bool backward,
                           const HardwareProfile& profile);
/// Element kernels that move so many bytes in all.
KernelSum element_kernels(double bytes, int launches, const HardwareProfile& profile);

}  // namespace spillway
