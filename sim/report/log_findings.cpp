#include "sim/report/log_findings.h"

#include <algorithm>

#include "model/plan/budget.h"
#include "sim/report/log_rules.h"

namespace spillway {
namespace {

constexpr log_rules::Rule kRules[] = {
    log_rules::second_pool,
    log_rules::host_pool,
    log_rules::refused_by_driver,
    log_rules::pool_state,
    log_rules::program_against_pool,
    log_rules::above_the_pool,
    log_rules::remat_limit,
    log_rules::scheduler_limit,
    log_rules::analysis_meaning,
    log_rules::report_names,
    log_rules::remarks,
};

/// What the pool must hold: at the failure all that was in use and the request, else the program.
std::optional<LogFraction> find_smallest_fraction(const LogEvidence& evidence) {
  if (!evidence.card) return std::nullopt;
  LogFraction fraction;
  fraction.card = evidence.card->bytes.value;
  fraction.card_origin = evidence.card->origin;
  if (evidence.dump && evidence.request) {
    fraction.need = evidence.dump->in_use->value + evidence.request->bytes.value;
    fraction.need_origin = "in use and requested";
  } else if (evidence.program) {
    fraction.need = evidence.program->bytes.value;
    fraction.need_origin = evidence.program->origin;
  } else {
    return std::nullopt;
  }
  fraction.smallest = smallest_fraction(fraction.need, fraction.card);
  if (evidence.dump && evidence.request && evidence.dump->largest_free) {
    const Bytes limit = evidence.dump->limit->value;
    const Bytes largest = evidence.dump->largest_free->value;
    const Bytes request = evidence.request->bytes.value;
    // At best the largest piece is the last one, and grows with the pool.
    if (largest < request && limit - evidence.dump->in_use->value > largest)
      fraction.smallest_as_it_lay = smallest_fraction(limit + request - largest, fraction.card);
  }
  return fraction;
}

}  // namespace

LogVerdict judge_log(const log::Log& log, const LogWishes& wishes) {
  const LogEvidence evidence = gather_evidence(log, wishes);
  LogVerdict verdict;
  verdict.fraction = find_smallest_fraction(evidence);
  const log_rules::Case c{log, evidence, verdict.fraction};
  for (const log_rules::Rule rule : kRules) rule(c, verdict.findings);
  std::stable_partition(verdict.findings.begin(), verdict.findings.end(),
                        [](const LogFinding& finding) { return finding.decides; });
  return verdict;
}

}  // namespace spillway
