#include "sim/report/capacity_rows.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "model/base/format.h"
#include "sim/report/capacity_sentences.h"

namespace spillway {
namespace {

/// What a reader would rather see: what fits, then what does most tokens a second, then what misses
/// least.
bool is_better(const CapacityCell& a, const CapacityCell& b) {
  if (a.is_possible() != b.is_possible()) return a.is_possible();
  if (a.fits != b.fits) return a.fits;
  if (a.fits) return a.tokens_per_second > b.tokens_per_second;
  return a.hbm_headroom() > b.hbm_headroom();
}

std::vector<std::size_t> best_batches(const CapacityReport& report) {
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, std::size_t> place;
  std::vector<std::size_t> best;
  for (std::size_t c = 0; c < report.cells.size(); ++c) {
    const CapacityKey& key = report.cells[c].key;
    const auto [found, is_new] = place.try_emplace(
        std::tuple(key.model, key.machine, key.devices, key.sequence), best.size());
    if (is_new)
      best.push_back(c);
    else if (is_better(report.cells[c], report.cells[best[found->second]]))
      best[found->second] = c;
  }
  return best;
}

}  // namespace

CapacityRows choose_rows(const CapacityReport& report, std::size_t most) {
  CapacityRows rows;
  rows.best_batch_only = report.cells.size() > most;
  if (rows.best_batch_only)
    rows.cells = best_batches(report);
  else
    for (std::size_t c = 0; c < report.cells.size(); ++c) rows.cells.push_back(c);
  if (rows.cells.size() > most) {
    rows.left_out = rows.cells.size() - most;
    rows.cells.resize(most);
  }
  return rows;
}

std::string left_out_text(const CapacityReport& report, const CapacityRows& rows) {
  std::string text;
  if (rows.best_batch_only)
    text = fmt::format(
        "Of {} cells the best batch of each model, machine, number of devices and "
        "sequence is shown",
        format_count(static_cast<std::int64_t>(report.cells.size())));
  if (rows.left_out > 0)
    text += fmt::format(", and of those {} more are left out",
                        format_count(static_cast<std::int64_t>(rows.left_out)));
  return text.empty() ? "" : text + "; --csv and --sqlite have all.";
}

std::vector<std::string> capacity_heads() {
  return {">devices", ">batch", ">tokens", "fits",  ">step",  ">tokens/s", ">per device",
          ">MFU",     ">HBM",   ">left",   ">host", "policy", "what binds"};
}

std::vector<std::string> capacity_row(const CapacityCell& cell) {
  std::vector<std::string> row = {std::to_string(cell.key.devices),
                                  cell.key.batch > 0 ? fmt::format("{:g}", cell.key.batch) : "-",
                                  cell.key.sequence > 0 ? std::to_string(cell.key.sequence) : "-"};
  if (!cell.is_possible()) {
    row.emplace_back("-");
    row.resize(capacity_heads().size() - 1);
    row.push_back("no such step: " + cell.impossible);
    return row;
  }
  row.emplace_back(cell.fits ? "yes" : "no");
  row.push_back(format_seconds(cell.step.step));
  row.push_back(rate_text(cell.tokens_per_second));
  row.push_back(rate_text(cell.tokens_per_second_per_device()));
  row.push_back(fmt::format("{:.1f} %", 100 * cell.mfu));
  row.push_back(format_bytes(cell.step.device));
  row.push_back(signed_text(cell.hbm_headroom(), format_bytes));
  row.push_back(format_bytes(cell.step.host));
  row.push_back(cell.policy);
  row.push_back(cell.fits ? cell.binds : cell.binds + ": " + shortage_text(cell));
  return row;
}

}  // namespace spillway
