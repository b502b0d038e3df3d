#include "sim/planner/flag_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/flags/flag_names.h"
#include "model/flags/flag_table.h"
#include "model/flags/known_flags.h"

namespace spillway {
namespace {

struct Candidate {
  std::string_view name;
  std::string value;
  const char* doubt = "";  ///< where compiling both ways does not bear the simulation out
};

/// docs/flags.md has the figures.
constexpr const char* kOfCollectives =
    ". Low confidence: compiled both ways for small steps alone. Scanned they came out as "
    "simulated; "
    "unrolled they gained more time and took more memory than simulated. Compile and compare.";
constexpr const char* kOfCopies =
    ". Low confidence: compiled both ways for small steps alone. Scanned it changed nothing; "
    "unrolled "
    "steps got slower. Compile and compare.";
constexpr const char* kOfSlop =
    ". Low confidence: it changed none of the small steps that were compiled both ways. Compile "
    "and "
    "compare.";

/// In the order in which the first of equals is taken.
std::vector<Candidate> candidates() {
  return {
      {flag::kPipelinedOffloading, "true"},
      {flag::kAsyncComputes, "8", kOfCopies},
      {flag::kFencing, std::to_string(kFencedFrom.value())},
      {flag::kSlopFactor, "70", kOfSlop},
      {flag::kCollectives, "4", kOfCollectives},
      {flag::kLatencyHiding, "true"},
      {flag::kLatencyHiding, "false"},
  };
}

/// How much better `c` is than `before`; nothing when it is not worth a flag.
std::optional<double> worth(const PolicyCase& c, const PolicyCase& before) {
  const double step = 1 - ratio(c.step, before.step);
  const double memory = 1 - ratio(c.peak_device, before.peak_device);
  if (before.fit.fits && !c.fit.fits) return std::nullopt;
  if (!before.fit.fits && c.fit.fits && step >= -kWorthStep) return 1 + step;
  if (step >= kWorthStep) return step;
  if (memory >= kWorthMemory && step >= -kWorthStep) return memory / 100;  // time goes first
  return std::nullopt;
}

class Search {
 public:
  Search(const Evaluator& evaluator, const Policy& policy, const FlagContext& context)
      : evaluator_(evaluator), policy_(policy), context_(context) {}

  Result<PolicyCase> run(const FlagSettings& flags) const {
    const auto settings = schedule_settings(flags, context_);
    if (settings) return evaluator_.evaluate(policy_, *settings);
    return Error{ErrorKind::kUsage,
                 "whether XLA hides latencies depends on a device that is not known",
                 {},
                 "",
                 ""};
  }
  /// Whether a flag would change anything at all.
  bool matters(const FlagSettings& flags, const FlagSettings& more) const {
    const auto before = schedule_settings(flags, context_),
               after = schedule_settings(more, context_);
    if (before && after && !before->scheduler.hides_latencies && !after->scheduler.hides_latencies)
      return before->pipelines_host_copies != after->pipelines_host_copies;
    return before != after;
  }

 private:
  const Evaluator& evaluator_;
  const Policy& policy_;
  const FlagContext& context_;
};

}  // namespace

FlagSearch search_flags(const Evaluator& evaluator, const Policy& policy, const FlagSettings& users,
                        const FlagContext& context) {
  FlagSearch result;
  const Search search(evaluator, policy, context);
  FlagSettings set = users;
  Result<PolicyCase> first = search.run(set);
  if (!first.ok()) {
    result.not_tried_because = first.error().text;
    return result;
  }
  std::optional<PolicyCase> at = std::move(first).value();
  const std::vector<Candidate> all = candidates();
  while (result.flags.size() < kMostSearched) {
    const Candidate* best = nullptr;
    std::optional<PolicyCase> best_case;
    double best_worth = 0;
    for (const Candidate& candidate : all) {
      if (set.contains(candidate.name) || !has_flag(context.jaxlib, candidate.name)) continue;
      FlagSettings more = set;
      more[std::string(candidate.name)] = candidate.value;
      if (!search.matters(set, more)) continue;
      ++result.tried;
      Result<PolicyCase> outcome = search.run(more);
      const auto gain = outcome.ok() ? worth(*outcome, *at) : std::nullopt;
      if (!gain || *gain <= best_worth) continue;
      best = &candidate;
      best_case = std::move(outcome).value();
      best_worth = *gain;
    }
    if (best == nullptr) break;
    const FlagInfo* const info = find_flag(best->name);
    Setting setting{std::string(best->name), best->value,
                    (info == nullptr ? "" : std::string(info->meaning)) + best->doubt};
    setting.effect =
        FlagEffect{best_case->step - at->step, best_case->peak_device - at->peak_device};
    result.flags.push_back(std::move(setting));
    set[std::string(best->name)] = best->value;
    at = std::move(best_case);
  }
  if (!set.contains(flag::kProfile) && has_flag(context.jaxlib, flag::kProfile)) {
    FlagSettings more = set;
    more[std::string(flag::kProfile)] = "any.pbtxt";
    if (search.matters(set, more)) {
      ++result.tried;
      Result<PolicyCase> outcome = search.run(more);
      if (outcome.ok() && worth(*outcome, *at)) result.with_profile = std::move(outcome).value();
    }
  }
  result.with_flags = std::move(at);
  return result;
}

}  // namespace spillway
