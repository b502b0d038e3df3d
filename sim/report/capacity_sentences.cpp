#include "sim/report/capacity_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.h"
#include "sim/capacity/answers.h"

namespace spillway {
namespace {

/// "-12 %".
std::string change_text(double now, double before) {
  const std::string text = fmt::format("{:+.0f} %", 100 * (now / before - 1));
  return text == "-0 %" ? "+0 %" : text;
}

/// "12.3 days" for a million million tokens.
std::string days_text(double tokens_per_second) {
  constexpr double kTokens = 1e12, kSecondsOfDay = 86400;
  const double days = kTokens / tokens_per_second / kSecondsOfDay;
  return fmt::format("{} days",
                     days < 100 ? fmt::format("{:.1f}", days) : format_count(std::llround(days)));
}

std::string who_text(const CapacityKey& key) {
  return fmt::format("{} on {}, {} tokens", key.model, key.machine, format_count(key.sequence));
}

std::string need_text(const CapacityReport& report, const CapacityNeed& need) {
  const CapacityCell& any = report.cells[need.any];
  const std::string who = who_text(any.key);
  if (!need.fewest) {
    if (!need.nearest) return fmt::format("{}: there is no such step: {}", who, any.impossible);
    const CapacityCell& cell = report.cells[*need.nearest];
    return fmt::format(
        "{}: more than this grid has; nearest are {} devices with batch {:g}, where {}", who,
        format_count(cell.key.devices), cell.key.batch, shortage_text(cell));
  }
  const CapacityCell& few = report.cells[*need.fewest];
  std::string text = fmt::format(
      "{}: {} devices, with batch {:g} and {}: {} tokens/s, {} a device; a million million tokens "
      "take {}",
      who, format_count(few.key.devices), few.key.batch, few.policy,
      rate_text(few.tokens_per_second), rate_text(few.tokens_per_second_per_device()),
      days_text(few.tokens_per_second));
  const CapacityCell& many = report.cells[*need.most];
  if (many.key.devices != few.key.devices)
    text += fmt::format(
        "; {} devices make it {} tokens/s, {} a device ({}), and {}",
        format_count(many.key.devices), rate_text(many.tokens_per_second),
        rate_text(many.tokens_per_second_per_device()),
        change_text(many.tokens_per_second_per_device(), few.tokens_per_second_per_device()),
        days_text(many.tokens_per_second));
  return text;
}

std::string gain_text(const CapacityReport& report, const BatchGain& gain) {
  const CapacityCell& small = report.cells[gain.smallest];
  const CapacityCell& best = report.cells[gain.best];
  std::string text =
      fmt::format("{}, {} devices: ", who_text(small.key), format_count(small.key.devices));
  if (gain.best != gain.smallest)
    text += fmt::format("batch {:g} instead of {:g} brings {} tokens/s ({} a device) for {} of HBM",
                        best.key.batch, small.key.batch,
                        change_text(best.tokens_per_second, small.tokens_per_second),
                        rate_text(best.tokens_per_second_per_device()),
                        signed_text(best.step.device - small.step.device, format_bytes));
  else
    text += fmt::format("no batch above {:g} that fits brings more tokens/s", small.key.batch);
  if (gain.too_large) {
    const CapacityCell& large = report.cells[*gain.too_large];
    text += fmt::format("; with {:g} {}", large.key.batch, shortage_text(large));
  }
  return text;
}

/// "h100 (pcie, 55 GB/s)".
std::string machine_text(const CapacityReport& report, const std::string& id) {
  const auto found = std::ranges::find(report.machines, id, &CapacityMachine::id);
  if (found == report.machines.end()) return id;
  return fmt::format("{} ({}, {:.0f} GB/s)", id, found->link, found->link_rate.value() / 1e9);
}

std::string sizes_text(const MachineComparison& c) {
  if (c.both_fit == 1) return "in the one size that fits both";
  return fmt::format("(median of {} sizes that fit both; {:.2f} to {:.2f})",
                     format_count(static_cast<std::int64_t>(c.both_fit)), c.least, c.most);
}

std::string comparison_text(const CapacityReport& report, const MachineComparison& c) {
  const CapacityKey& key = report.cells[c.cell].key;
  const std::string& first = report.cells[c.first].key.machine;
  const std::string machine = machine_text(report, key.machine);
  if (c.cells == 0)
    return fmt::format("{}: {} and {} have no size in common", key.model, machine, first);
  std::string text = fmt::format("{}: ", key.model);
  if (c.both_fit > 0)
    text += fmt::format("{} does {:.2f} times the tokens/s of {} {}", machine, c.median,
                        machine_text(report, first), sizes_text(c));
  else
    text += fmt::format("no size fits both {} and {}", machine, machine_text(report, first));
  text += fmt::format("; {} of {} sizes fit {}, {} fit {}", c.fit, c.cells, key.machine,
                      c.fit_on_first, first);
  if (c.on_host + c.on_host_on_first > 0)
    text += fmt::format("; the best policy uses host memory in {} of those, and in {}", c.on_host,
                        c.on_host_on_first);
  return text;
}

template <typename Items, typename Text>
void add_answer(const char* question, const CapacityReport& report, const Items& items,
                const Text& text, std::vector<CapacityAnswer>& answers) {
  if (items.empty()) return;
  CapacityAnswer& answer = answers.emplace_back();
  answer.question = question;
  for (const auto& item : items) answer.sentences.push_back(text(report, item));
}

}  // namespace

std::string shortage_text(const CapacityCell& cell) {
  const Bytes none(0);
  std::string text;
  if (cell.hbm_headroom() < none)
    text = "HBM is short by " + format_bytes(none - cell.hbm_headroom());
  if (cell.host_headroom() < none)
    text += (text.empty() ? "" : " and ") +
            ("host memory by " + format_bytes(none - cell.host_headroom()));
  return text;
}

std::string rate_text(double tokens_per_second) {
  constexpr double kFew = 100;
  return tokens_per_second < kFew ? fmt::format("{:.1f}", tokens_per_second)
                                  : format_count(std::llround(tokens_per_second));
}

std::vector<CapacityAnswer> answer_questions(const CapacityReport& report) {
  std::vector<CapacityAnswer> answers;
  add_answer("How many GPUs are needed?", report, find_needs(report), need_text, answers);
  add_answer("What does a bigger batch bring?", report, find_batch_gains(report), gain_text,
             answers);
  add_answer("What would another machine change?", report, compare_machines(report),
             comparison_text, answers);
  return answers;
}

}  // namespace spillway
