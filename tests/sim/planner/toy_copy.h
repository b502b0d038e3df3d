// A copy to the host behind a kernel, and kernels that could hide it, on the toy machine.
#pragma once

#include <string_view>

namespace spillway::testing {

/// In the order of latency hiding off: the done right behind the start.
///   off      x  out........  y  z  end
///   hidden   x  out........
///               y  z  end
/// Each kernel reads 32 B and writes as many at 32 B/s: 2 s. The copy is 32 B at 2 B/s, and 1 s.
inline constexpr std::string_view kCopyBehindKernel = R"(
ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %x = f32[8]{0} negate(%a)
  %out = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(%x)
  %outdone = f32[8]{0:S(5)} copy-done(%out)
  %y = f32[8]{0} negate(%x)
  %z = f32[8]{0} negate(%y)
  %end = f32[8]{0} negate(%z)
  ROOT %both = (f32[8]{0}, f32[8]{0:S(5)}) tuple(%end, %outdone)
}
)";

}  // namespace spillway::testing
