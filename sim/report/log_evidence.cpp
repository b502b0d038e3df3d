#include "sim/report/log_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/plan/budget.h"

namespace spillway {
namespace {

/// Nobody's card has less; smaller numbers are other things.
constexpr Bytes kSmallestCard{std::int64_t{1} << 30};
/// What the compiler may use of a card when it is not told its size.
constexpr double kSchedulerShare = 0.8;

template <typename Found, typename Test>
const Found* first(const std::vector<Found>& all, Test test) {
  const auto at = std::ranges::find_if(all, test);
  return at == all.end() ? nullptr : &*at;
}

/// The request that failed, from the sentence of the error and the allocator's line.
std::optional<Evidence> find_request(const log::Log& log, log::FailedIn where, log::PoolKind pool) {
  const auto* error =
      first(log.out_of_memory, [&](const log::OutOfMemory& e) { return e.where == where; });
  const auto* line = first(log.failed_requests, [&](const log::FailedRequest& r) {
    return log::pool_kind(r.allocator) == pool &&
           (!error || may_be_equal(r.requested, error->requested));
  });
  if (error && (error->requested.exact() || !line))
    return Evidence{error->line, error->requested, "the error"};
  if (line) return Evidence{line->line, line->requested, "the allocator"};
  return std::nullopt;
}

const log::PoolDump* find_dump(const log::Log& log, log::PoolKind kind) {
  return first(log.pool_dumps, [kind](const log::PoolDump& d) { return d.kind == kind && !d.cut; });
}

const log::PoolSize* find_size(const log::Log& log, log::PoolKind kind) {
  return first(log.pool_sizes, [kind](const log::PoolSize& s) { return s.kind == kind; });
}

std::optional<Evidence> find_pool(const log::Log& log, const log::PoolDump* dump) {
  if (const auto* size = find_size(log, log::PoolKind::kDevice))
    return Evidence{size->line, {size->bytes}, "the pool's size at the start"};
  if (dump) return Evidence{dump->line, *dump->limit, "the pool's limit"};
  return std::nullopt;
}

std::optional<double> find_fraction(const log::Log& log) {
  const auto* setting = first(log.settings, [](const log::Setting& s) {
    return s.name.ends_with("MEM_FRACTION") && s.value >= 0.01 && s.value <= 1;
  });
  return setting ? std::optional(setting->value) : std::nullopt;
}

void find_card(const log::Log& log, const LogWishes& wishes, LogEvidence& evidence) {
  if (wishes.hbm) {
    evidence.card = Evidence{0, {*wishes.hbm}, wishes.hbm_origin};
    return;
  }
  if (!log.cuda_memory.empty()) {
    const log::CudaMemory& memory = log.cuda_memory.front();
    evidence.card = Evidence{memory.line, {memory.total}, "the driver's total"};
    return;
  }
  const log::PoolSize* device = find_size(log, log::PoolKind::kDevice);
  const log::PoolSize* collective = find_size(log, log::PoolKind::kCollective);
  // By default the second pool may grow over what the first leaves.
  if (device && collective && !collective->preallocated) {
    evidence.card =
        Evidence{collective->line, {device->bytes + collective->bytes}, "both pools together"};
    return;
  }
  const auto* limit = first(log.scheduler_memory, [](const log::SchedulerMemory& s) {
    return s.message == log::SchedulerMessage::kArguments && s.limit >= kSmallestCard;
  });
  const auto stated = find_fraction(log);
  if (limit && !stated) {
    const auto card = static_cast<double>(limit->limit.value()) / kSchedulerShare;
    const Bytes bytes(static_cast<std::int64_t>(card));
    if (!evidence.pool || evidence.pool->bytes.value <= bytes) {
      evidence.card =
          Evidence{limit->line,
                   {bytes},
                   fmt::format("the scheduler's base, if it is {:g} of it", kSchedulerShare)};
      return;
    }
  }
  if (!evidence.pool) return;
  const double fraction = stated.value_or(kDefaultMemoryFraction);
  const auto card = static_cast<double>(evidence.pool->bytes.value.value()) / fraction;
  evidence.card = Evidence{evidence.pool->line,
                           {Bytes(static_cast<std::int64_t>(card))},
                           fmt::format("the pool, if it is {:g} of the card", fraction)};
}

/// Exact figures before rounded ones; the statistics last, for they count host memory too.
void find_program(const log::Log& log, LogEvidence& evidence) {
  for (const log::UsageReport& report : log.usage_reports) {
    if (!evidence.program)
      if (const auto total = report.device_total())
        evidence.program = Evidence{report.line, *total, "the memory usage report"};
    if (!evidence.host_program)
      if (const auto total = report.host_total())
        evidence.host_program = Evidence{report.line, *total, "the memory usage report"};
  }
  for (const log::MemoryAnalysis& analysis : log.memory_analyses) {
    if (!analysis.available()) continue;
    const auto total = analysis.device_total();
    if (!evidence.program && total)
      evidence.program = Evidence{analysis.line, {*total}, "memory_analysis()"};
    const auto host = analysis.host_total();
    if (!evidence.host_program && host && *host > Bytes(0))
      evidence.host_program = Evidence{analysis.line, {*host}, "memory_analysis()"};
  }
  if (!evidence.program && evidence.stats)
    evidence.program = Evidence{evidence.stats->line, *evidence.stats->total, "the statistics"};
}

}  // namespace

LogEvidence gather_evidence(const log::Log& log, const LogWishes& wishes) {
  LogEvidence evidence;
  evidence.request = find_request(log, log::FailedIn::kDevicePool, log::PoolKind::kDevice);
  evidence.host_request = find_request(log, log::FailedIn::kHostPool, log::PoolKind::kHost);
  evidence.dump = find_dump(log, log::PoolKind::kDevice);
  evidence.host_dump = find_dump(log, log::PoolKind::kHost);
  evidence.stats =
      first(log.buffer_stats, [](const log::BufferStats& s) { return s.total.has_value(); });
  evidence.pool = find_pool(log, evidence.dump);
  find_card(log, wishes, evidence);
  if (evidence.card && evidence.card->bytes.value < kSmallestCard) evidence.card.reset();
  if (!evidence.pool && evidence.card) {
    const auto stated = find_fraction(log);
    const double fraction = stated.value_or(kDefaultMemoryFraction);
    const double share = static_cast<double>(evidence.card->bytes.value.value()) * fraction;
    evidence.pool = Evidence{
        0,
        {Bytes(static_cast<std::int64_t>(share))},
        fmt::format("{} {:g} of the card", stated ? "as set," : "JAX's default,", fraction)};
  }
  find_program(log, evidence);
  return evidence;
}

}  // namespace spillway
