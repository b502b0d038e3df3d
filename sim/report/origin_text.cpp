#include "sim/report/origin_text.h"

#include <fmt/format.h>

namespace spillway {

std::string origin_text(const std::string& path, std::size_t modules_in_folder) {
  if (modules_in_folder < 2) return path;
  return fmt::format(
      "{}\n(of {} modules in that folder the likeliest training step; name a file "
      "for another)",
      path, modules_in_folder);
}

}  // namespace spillway
