#include "sim/report/case_text.h"

#include <fmt/format.h>

#include "model/base/format.h"

namespace spillway {

std::string policy_text(const std::vector<Handle>& handles, const Policy& policy) {
  std::string kept, offloaded;
  for (std::size_t k = 0; k < handles.size(); ++k) {
    std::string& list = policy[k] == Choice::kOffload ? offloaded : kept;
    list += (list.empty() ? "" : " ") + handles[k].name;
  }
  if (offloaded.empty()) return "nothing offloaded";
  return "offload " + offloaded + (kept.empty() ? "" : "; keep " + kept);
}

std::string fit_text(const PolicyCase& outcome) {
  if (outcome.fit.fits) return "fits";
  std::string text = "misses";
  if (outcome.fit.over_hbm > Bytes(0)) text += " HBM by " + format_bytes(outcome.fit.over_hbm);
  if (outcome.fit.over_host > Bytes(0))
    text += std::string(outcome.fit.over_hbm > Bytes(0) ? "," : "") + " host by " +
            format_bytes(outcome.fit.over_host);
  return text;
}

std::vector<std::string> case_row(const std::string& name, const PolicyCase& c,
                                  const std::string& last) {
  return {name,
          format_seconds(c.step),
          format_bytes(c.peak_device),
          format_bytes(c.host),
          format_seconds(c.exposed_copies),
          fmt::format("{:.2f}", c.fit.smallest_fraction),
          fit_text(c),
          last};
}

std::vector<std::string> case_heads(const std::string& last) {
  return {"", ">step", ">HBM", ">host", ">copies exposed", ">pool needed", "", last};
}

}  // namespace spillway
