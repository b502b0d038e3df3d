#include "sim/report/capacity_heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/base/format.h"
#include "sim/report/capacity_sentences.h"

namespace spillway {
namespace {

constexpr std::string_view kStyle = R"(
.maps { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
.map { border-collapse: separate; border-spacing: 2px; font-size: .8rem; }
.map caption { text-align: left; font-weight: 600; padding: .2rem 0; }
.map th { font-weight: 500; color: #444; padding: .1rem .4rem; }
.map td { min-width: 5.2rem; padding: .3rem .4rem; text-align: right; border: 1px solid #0002; }
.map td b { display: block; font-size: .95rem; }
.map td.no { color: #222; text-align: left; border: 1px dashed #555;
  background: repeating-linear-gradient(45deg, #fff 0 5px, #d9d9d9 5px 7px); }
.map td.no span { background: #fffc; }
.map td.none { color: #777; text-align: center; border: 1px dotted #bbb; }
.key { display: flex; gap: 1px; align-items: center; font-size: .8rem; margin: .5rem 0; }
.key i { width: 1.6rem; height: 1rem; display: inline-block; }
.key i.no { border: 1px dashed #555; margin-left: 1rem;
  background: repeating-linear-gradient(45deg, #fff 0 5px, #d9d9d9 5px 7px); }
.key span { margin: 0 .5rem; }
)";

struct Colour {
  double red, green, blue;
};
/// From pale to dark, even to the eye and to those who see no red or green; drawn from these by
/// straight lines between them.
constexpr Colour kScale[] = {
    {247, 251, 255}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}};

Colour colour_at(double share) {
  constexpr double kSteps = std::size(kScale) - 1;
  const double at = std::clamp(share, 0.0, 1.0) * kSteps;
  const auto from = std::min(static_cast<std::size_t>(at), std::size(kScale) - 2);
  const double part = at - static_cast<double>(from);
  const Colour &a = kScale[from], &b = kScale[from + 1];
  return {a.red + part * (b.red - a.red), a.green + part * (b.green - a.green),
          a.blue + part * (b.blue - a.blue)};
}

/// Background and a colour of letters that can be read on it.
std::string colours(double share) {
  constexpr double kDark = 0.62;  // from here on white has more contrast than black
  const Colour c = colour_at(share);
  return fmt::format("background:#{:02x}{:02x}{:02x};color:{}", std::lround(c.red),
                     std::lround(c.green), std::lround(c.blue), share > kDark ? "#fff" : "#111");
}

std::string tooltip(const CapacityCell& cell) {
  return html_text(fmt::format(
      "{}; step {}; {} tokens/s in all; MFU {:.1f} %; HBM {} of {}; host {} of {}; binds: {}",
      cell.policy, format_seconds(cell.step.step), rate_text(cell.tokens_per_second),
      100 * cell.mfu, format_bytes(cell.step.device), format_bytes(cell.pool),
      format_bytes(cell.step.host), format_bytes(cell.host), cell.binds));
}

std::string cell_html(const CapacityCell& cell, double best_rate) {
  if (!cell.is_possible())
    return fmt::format("<td class=\"none\" title=\"{}\">no such step</td>",
                       html_text(cell.impossible));
  const std::string title = tooltip(cell);
  if (!cell.fits)
    return fmt::format(
        "<td class=\"no\" title=\"{}\"><span><b>✕ too large</b>{}</span></td>", title,
        cell.hbm_headroom() < Bytes(0) ? "HBM " + format_bytes(cell.hbm_headroom())
                                       : "host " + format_bytes(cell.host_headroom()));
  const double rate = cell.tokens_per_second_per_device();
  return fmt::format("<td style=\"{}\" title=\"{}\"><b>{}</b>{}</td>", colours(rate / best_rate),
                     title, rate_text(rate), format_seconds(cell.step.step));
}

/// Cells of one model on one machine at one sequence, by batch and devices.
struct Map {
  std::int64_t sequence = 0;
  std::set<double> batches;
  std::set<std::int64_t> devices;
  std::map<std::pair<double, std::int64_t>, const CapacityCell*> cells;
};

std::string map_html(const Map& map, double best_rate) {
  std::string html = fmt::format(
      "<table class=\"map\"><caption>{} tokens a sequence</caption>\n<tr><th scope=\"col\">batch "
      "\\ "
      "devices</th>",
      format_count(map.sequence));
  for (const std::int64_t devices : map.devices)
    html += fmt::format("<th scope=\"col\">{}</th>", format_count(devices));
  html += "</tr>\n";
  for (const double batch : map.batches) {
    html += fmt::format("<tr><th scope=\"row\">{:g}</th>", batch);
    for (const std::int64_t devices : map.devices) {
      const auto found = map.cells.find({batch, devices});
      html += found == map.cells.end() ? "<td class=\"none\"></td>"
                                       : cell_html(*found->second, best_rate);
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string maps_html(const std::map<std::int64_t, Map>& maps, double best_rate) {
  std::string html = "<div class=\"maps\">\n";
  for (const auto& [sequence, map] : maps) html += map_html(map, best_rate);
  return html + "</div>\n";
}

std::string key_html(double best_rate) {
  std::string html = "<p class=\"key\"><span>tokens/s a device: 0</span>";
  for (const double share : {0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0})
    html += fmt::format("<i style=\"{}\"></i>", colours(share));
  return html + fmt::format(
                    "<span>{}</span><i class=\"no\"></i><span>does not fit, and what it is "
                    "short of</span></p>\n",
                    rate_text(best_rate));
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '&')
      html += "&amp;";
    else if (c == '<')
      html += "&lt;";
    else if (c == '>')
      html += "&gt;";
    else if (c == '"')
      html += "&quot;";
    else
      html += c;
  }
  return html;
}

std::string_view heat_map_style() { return kStyle; }

std::string heat_maps(const CapacityReport& report, std::size_t most) {
  // One scale for a model, so that its machines can be compared.
  std::map<std::string, double> best;
  for (const CapacityCell& cell : report.cells)
    if (cell.fits)
      best[cell.key.model] = std::max(best[cell.key.model], cell.tokens_per_second_per_device());
  std::string html;
  std::map<std::int64_t, Map> maps;
  const std::size_t end = std::min(most, report.cells.size());
  for (std::size_t c = 0; c < end; ++c) {
    const CapacityCell& cell = report.cells[c];
    const CapacityKey& key = cell.key;
    const CapacityKey* const before = c > 0 ? &report.cells[c - 1].key : nullptr;
    if (before == nullptr || before->model != key.model)
      html += "<h2>" + html_text(key.model) + "</h2>\n" + key_html(best[key.model]) +
              "<div class=\"maps\">\n";
    Map& map = maps[key.sequence];
    map.sequence = key.sequence;
    map.batches.insert(key.batch);
    map.devices.insert(key.devices);
    map.cells[{key.batch, key.devices}] = &cell;
    const CapacityKey* const next = c + 1 < end ? &report.cells[c + 1].key : nullptr;
    if (next != nullptr && next->model == key.model && next->machine == key.machine) continue;
    html += "<div><h3>" + html_text(key.machine) + ", " + format_bytes(cell.pool) +
            " of HBM a device</h3>\n" + maps_html(maps, best[key.model]) + "</div>\n";
    maps.clear();
    if (next == nullptr || next->model != key.model) html += "</div>\n";
  }
  if (end < report.cells.size())
    html += fmt::format("<p>These are the first {} of {} cells; CSV and SQLite have all.</p>\n",
                        format_count(static_cast<std::int64_t>(end)),
                        format_count(static_cast<std::int64_t>(report.cells.size())));
  return html;
}

}  // namespace spillway
