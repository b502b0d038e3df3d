// spillway merge FILE…
#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "model/base/read_file.h"
#include "sim/report/merge_shards.h"

namespace spillway {
namespace {

int run_merge(const std::vector<std::string>& files) {
  std::vector<ShardText> shards;
  for (const std::string& path : files) {
    const auto text = read_file(path);
    if (!text.ok()) return report(text.error());
    shards.push_back({path, **text});
  }
  const Result<std::string> merged = merge_shards(shards);
  return merged.ok() ? answer(*merged) : report(merged.error());
}

}  // namespace

Runner add_merge(CLI::App& subcommand, const Surroundings&) {
  auto files = std::make_shared<std::vector<std::string>>();
  subcommand.add_option("FILE", *files, "the JSON answers of all parts, in any order")->required();
  return [files] { return run_merge(*files); };
}

}  // namespace spillway
