#include "model/run/nsys_ranges.h"

#include <algorithm>

#include "model/base/format.h"

namespace spillway {
namespace {

struct Range {
  std::int64_t start = 0, end = 0;
  RunNameId instruction, module;  ///< one of the two is empty
  std::int64_t id = 0;
};

struct Launch {
  std::int64_t start = 0, correlation = 0;
};

/// The value of key= in "Thunk:#name=jit(f)/dot,hlo_op=fusion.1#".
std::string_view field(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t value = at + key.size();
    const bool begins = at == 0 || text[at - 1] == ',' || text[at - 1] == '#';
    if (begins && value < text.size() && text[value] == '=')
      return text.substr(value + 1, text.find_first_of(",#", value) - value - 1);
  }
  return {};
}

class RangeReader {
 public:
  RangeReader(const SqliteFile& file, const NsysTables& tables,
              const std::map<std::int64_t, std::string>& strings, RunNames& names)
      : file_(file), tables_(tables), strings_(strings), names_(names) {}

  LaunchOwners run() {
    read_ranges();
    read_launches();
    for (auto& [thread, launches] : launches_)
      if (const auto ranges = ranges_.find(thread); ranges != ranges_.end())
        match(thread, launches, ranges->second);
    return std::move(result_);
  }

 private:
  static bool is_of_xla(std::string_view text) {
    return text.find("Thunk:#") != std::string_view::npos ||
           text.find("XlaModule:#") != std::string_view::npos;
  }

  void read_ranges() {
    const std::vector<std::string> found = tables_.versions_of("NVTX_EVENTS");
    if (found.empty()) {
      result_.notes.push_back({"no table NVTX_EVENTS",
                               "kernels and copies are not known by HLO instruction: profile with "
                               "nsys --trace=cuda,nvtx"});
      return;
    }
    for (const std::string& table : found)
      if (auto error =
              file_.each(tables_.select(table, {"start", "end", "globalTid", "text", "textId"}),
                         [&](const SqliteRow& row) { read_range(row); }))
        result_.notes.push_back({table + ": " + error->text, "what stands before is read"});
    if (result_.ranges == 0)
      result_.notes.push_back(
          {"no NVTX range of XLA in " + found.back(),
           "kernels and copies are not known by HLO instruction: was it JAX that ran?"});
  }

  /// Its text is in the row or in the table of strings.
  void read_range(const SqliteRow& row) {
    const auto start = row.integer(0), end = row.integer(1), thread = row.integer(2);
    if (!start || !end || !thread) return;
    std::string_view text = row.text(3);
    if (text.empty())
      if (const auto id = row.integer(4))
        if (const auto string = strings_.find(*id); string != strings_.end()) text = string->second;
    if (!is_of_xla(text)) return;
    const bool is_thunk = text.find("Thunk:#") != std::string_view::npos;
    const std::string_view name = field(text, is_thunk ? "hlo_op" : "hlo_module");
    if (name.empty()) return;
    Range range{*start, *end, {}, {}, ++result_.ranges};
    (is_thunk ? range.instruction : range.module) = names_.intern(name);
    ranges_[*thread].push_back(range);
  }

  void read_launches() {
    const std::vector<std::string> found = tables_.versions_of("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (found.empty())
      result_.notes.push_back({"no table CUPTI_ACTIVITY_KIND_RUNTIME",
                               "which range a kernel was launched in is not known"});
    for (const std::string& table : found)
      if (auto error = file_.each(tables_.select(table, {"start", "globalTid", "correlationId"}),
                                  [&](const SqliteRow& row) {
                                    const auto start = row.integer(0), thread = row.integer(1),
                                               id = row.integer(2);
                                    if (start && thread && id)
                                      launches_[*thread].push_back({*start, *id});
                                  }))
        result_.notes.push_back({table + ": " + error->text, "what stands before is read"});
  }

  /// Both in order of time: the open ranges are a stack.
  void match(std::int64_t thread, std::vector<Launch>& launches, std::vector<Range>& ranges) {
    std::ranges::stable_sort(launches, {}, &Launch::start);
    std::ranges::stable_sort(ranges, [](const Range& a, const Range& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::vector<const Range*> open;
    auto next = ranges.begin();
    for (const Launch& launch : launches) {
      for (; next != ranges.end() && next->start <= launch.start; ++next) {
        while (!open.empty() && open.back()->end <= next->start) open.pop_back();
        open.push_back(&*next);
      }
      while (!open.empty() && open.back()->end <= launch.start) open.pop_back();
      LaunchOwner owner;
      for (auto range = open.rbegin(); range != open.rend(); ++range) {
        if (!owner.execution && (*range)->instruction != RunNameId()) {
          owner.instruction = (*range)->instruction;
          owner.execution = (*range)->id;
        }
        if (!owner.module_execution && (*range)->module != RunNameId()) {
          owner.module = (*range)->module;
          owner.module_execution = (*range)->id;
        }
      }
      if (owner.execution || owner.module_execution)
        result_.owners[{process_of(thread), launch.correlation}] = owner;
    }
  }

  const SqliteFile& file_;
  const NsysTables& tables_;
  const std::map<std::int64_t, std::string>& strings_;
  RunNames& names_;
  std::map<std::int64_t, std::vector<Range>> ranges_;     ///< by thread
  std::map<std::int64_t, std::vector<Launch>> launches_;  ///< by thread
  LaunchOwners result_;
};

}  // namespace

std::int64_t process_of(std::int64_t global_id) { return global_id / 0x1000000 % 0x1000000; }

LaunchOwners find_launch_owners(const SqliteFile& file, const NsysTables& tables,
                                const std::map<std::int64_t, std::string>& strings,
                                RunNames& names) {
  return RangeReader(file, tables, strings, names).run();
}

}  // namespace spillway
