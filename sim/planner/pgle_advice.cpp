#include "sim/planner/pgle_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/flags/check_flags.h"
#include "model/flags/flag_names.h"
#include "model/flags/known_flags.h"

namespace spillway {
namespace {

using Text = std::string;

Setting profile_flag(const Text& path) {
  return {Text(flag::kProfile), path, "XLA takes the costs of the profile for its own"};
}

Setting fencing_flag() {
  return {Text(flag::kFencing), std::to_string(kFencedFrom.value()),
          "what went to the host leaves HBM before its next use comes near"};
}

bool is_straight_line(const PgleCopy& copy) { return !copy.has_cost; }

PgleAdvice not_recommended(Text why, std::vector<Setting> flags = {}) {
  return {false, std::move(flags), "Not recommended: " + std::move(why)};
}

PgleAdvice advise_unrolled(bool link_bound, const PgleSituation& situation, const Text& path) {
  if (!has_flag(situation.context.jaxlib, flag::kFencing))
    return not_recommended(fmt::format(
        "outside loops the profile gained with memory fencing alone, which jaxlib {} has not",
        to_string(situation.context.jaxlib)));
  if (link_bound)
    return not_recommended(
        "the copies take longer than all kernels together. There memory fencing gained by itself, "
        "and the profile lost as often as it gained",
        {fencing_flag()});
  return {true,
          {fencing_flag(), profile_flag(path)},
          "Recommended together with memory fencing: the copies stand outside loops, and there the "
          "two made steps faster with less HBM. Fencing by itself takes least HBM; the profile by "
          "itself takes more than neither"};
}

PgleAdvice advise_scanned(bool link_bound, const Text& path) {
  if (link_bound)
    return not_recommended(
        "the copies take longer than all kernels together. There steps became faster, but took "
        "more HBM");
  return {true,
          {profile_flag(path)},
          "Recommended, without memory fencing: the copies are in loops, and there steps became "
          "faster, or stayed, without more HBM"};
}

/// Whether XLA hides latencies under the user's flags, with this profile or without any.
bool hides_latencies(const PgleSituation& situation, std::string_view profile) {
  FlagSettings flags = situation.users;
  flags[Text(flag::kProfile)] = profile;
  const auto settings = schedule_settings(flags, situation.context);
  return settings && settings->scheduler.hides_latencies;
}

/// Leaves out what the user sets so already, and says what takes the place of another value.
void compare_with_users(PgleAdvice& advice, const FlagSettings& users) {
  std::erase_if(advice.flags, [&](const Setting& setting) {
    const auto found = users.find(setting.name);
    return found != users.end() && found->second == setting.value;
  });
  for (const Setting& setting : advice.flags)
    if (const auto found = users.find(setting.name); found != users.end())
      advice.text +=
          fmt::format(". It takes the place of your {}", flag::set(setting.name, found->second));
}

}  // namespace

PgleAdvice advise_pgle(const PgleProfile& profile, const PgleSituation& situation,
                       const Text& path) {
  if (!situation.is_planned)
    return not_recommended(
        "it has the names of the program as compiled, and the plan makes another of it. Compile "
        "that first, and write the profile from its dump");
  if (profile.copies.empty())
    return not_recommended("the program copies nothing across the host link");
  if (check_version(situation.context.jaxlib))
    return not_recommended(fmt::format("the flags of jaxlib {} are not known here",
                                       to_string(situation.context.jaxlib)));
  if (!hides_latencies(situation, path))
    return not_recommended(fmt::format(
        "with your --{}=false XLA does not look at it: only the latency-hiding scheduler does",
        flag::kLatencyHiding));
  const bool link_bound = situation.link > situation.kernels;
  const bool is_hidden_anyway = hides_latencies(situation, "");
  if (link_bound && !is_hidden_anyway)
    return not_recommended(fmt::format(
        "the copies take longer than all kernels together. The profile would switch latency hiding "
        "on, which is off otherwise and makes steps faster with more HBM: try {} first",
        flag::set(flag::kLatencyHiding, "true")));
  PgleAdvice advice = std::ranges::any_of(profile.copies, is_straight_line)
                          ? advise_unrolled(link_bound, situation, path)
                          : advise_scanned(link_bound, path);
  if (advice.recommended && !is_hidden_anyway)
    advice.text +=
        ". It also switches latency hiding on, which is off otherwise: most of what it gains "
        "there, "
        "and in loops up to an eighth more HBM";
  compare_with_users(advice, situation.users);
  return advice;
}

}  // namespace spillway
