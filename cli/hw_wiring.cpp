// spillway hw list|show|check: the command line of hw_command.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/hw_command.h"

namespace spillway {
namespace {

struct HwOptions {
  std::string profile;
  bool json = false;
};

int finish(const HwResult& result) {
  std::fputs(result.err.c_str(), stderr);
  return result.out.empty() ? result.exit_code : answer(result.out, result.exit_code);
}

}  // namespace

Runner add_hw(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<HwOptions>();
  subcommand.require_subcommand(1);
  CLI::App* list = subcommand.add_subcommand("list", "the machines known, a line each");
  CLI::App* show =
      subcommand.add_subcommand("show", "every figure of one machine, with its origin");
  CLI::App* check =
      subcommand.add_subcommand("check", "whether the figures of a profile can be right together");
  for (CLI::App* one : {show, check})
    one->add_option("PROFILE", options->profile, "id such as gb200, or a YAML file")->required();
  for (CLI::App* one : {list, show, check})
    one->add_flag("--json", options->json, "for scripts: schema spillway.hw/1");
  return [=, &surroundings] {
    if (list->parsed()) return finish(hw_list(surroundings.profiles, options->json));
    if (show->parsed())
      return finish(hw_show(options->profile, surroundings.profiles, options->json));
    return finish(hw_check(options->profile, surroundings.profiles, options->json));
  };
}

}  // namespace spillway
