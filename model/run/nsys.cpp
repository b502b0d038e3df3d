#include "model/run/nsys.h"

#include <algorithm>
#include <limits>
#include <set>

#include "model/base/format.h"
#include "model/run/gpu_events.h"
#include "model/run/nsys_ranges.h"
#include "model/run/nsys_tables.h"
#include "model/run/sqlite_file.h"

namespace spillway {
namespace {

constexpr std::int64_t kMostNanoseconds = std::numeric_limits<std::int64_t>::max() / 1000;

/// Copies between devices stand in a table of their own in some versions.
constexpr const char* kCopyTables[] = {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"};

class NsysReader {
 public:
  NsysReader(const SqliteFile& file, std::string path) : file_(file), tables_(file) {
    run_.format = RunFormat::kNsightSystems;
    run_.path = std::move(path);
  }

  Result<MeasuredRun> run() {
    if (has_table("StringTable") && !has_table("StringIds"))
      return error_in_file(run_.path, "is an export of nvprof, whose tables are others",
                           "profile with nsys, and export with nsys export --type sqlite");
    read_strings();
    owners_ = find_launch_owners(file_, tables_, strings_, all_.names);
    read_kernels();
    read_copies();
    read_fills();
    if (all_.events.empty())
      return error_in_file(run_.path, "no kernel and no copy in this database",
                           tables_.versions_of("StringIds").empty()
                               ? "give what nsys export --type sqlite writes"
                               : "profile with nsys --trace=cuda,nvtx");
    run_.notes.insert(run_.notes.end(), owners_.notes.begin(), owners_.notes.end());
    name_devices();
    read_device();
    summarize(std::move(all_), run_);
    if (owners_.ranges > 0)
      run_.read.push_back(format_count(owners_.ranges) + " NVTX ranges of XLA");
    return std::move(run_);
  }

 private:
  bool has_table(std::string_view name) const {
    return std::ranges::find(file_.tables(), name) != file_.tables().end();
  }

  void read_strings() {
    for (const std::string& table : tables_.versions_of("StringIds"))
      read(table, tables_.select(table, {"id", "value"}), [&](const SqliteRow& row) {
        if (const auto id = row.integer(0)) strings_[*id] = row.text(1);
      });
  }

  void read_device() {
    for (const std::string& table : tables_.versions_of("TARGET_INFO_GPU"))
      read(table, tables_.select(table, {"name"}), [&](const SqliteRow& row) {
        if (run_.device.empty()) run_.device = row.text(0);
      });
  }

  template <typename Visit>
  void read(const std::string& table, const std::string& query, const Visit& visit) {
    if (auto error = file_.each(query, visit))
      run_.notes.push_back({table + ": " + error->text, "what stands before is read"});
  }

  void note_lacks(const std::string& table, const std::vector<std::string>& lacks,
                  const std::string& consequence) {
    if (lacks.empty()) return;
    std::string columns;
    for (const std::string& column : lacks) columns += (columns.empty() ? "" : ", ") + column;
    run_.notes.push_back({table + " has no column " + columns, consequence});
  }

  /// Columns 0 to 5 of every table of GPU work.
  bool read_common(const SqliteRow& row, GpuEvent& event) {
    const auto start = row.integer(0), end = row.integer(1);
    if (!start || !end || *end < *start || *start < 0 || *end > kMostNanoseconds) return false;
    event.start = SimTime(*start * 1000);
    event.end = SimTime(*end * 1000);
    event.device = row.integer(2).value_or(0);
    const auto stream = row.integer(3);
    event.stream = all_.names.intern(stream ? std::to_string(*stream) : "");
    const std::int64_t process = process_of(row.integer(5).value_or(0));
    processes_.push_back(process);
    const auto correlation = row.integer(4);
    if (!correlation) return true;
    auto owner = owners_.owners.find({process, *correlation});
    if (owner == owners_.owners.end()) return true;
    event.instruction = owner->second.instruction;
    event.module = owner->second.module;
    event.execution = owner->second.execution;
    event.module_execution = owner->second.module_execution;
    return true;
  }

  void read_kernels() {
    auto found = tables_.versions_of("CUPTI_ACTIVITY_KIND_KERNEL");
    for (std::string& table : tables_.versions_of("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"))
      found.push_back(std::move(table));
    if (found.empty())
      run_.notes.push_back({"no table CUPTI_ACTIVITY_KIND_KERNEL",
                            "what instructions took, and what copies ran beside, is not known"});
    for (const std::string& table : found) {
      const std::string query =
          tables_.select(table, {"start", "end", "deviceId", "streamId", "correlationId",
                                 "globalPid", "shortName", "demangledName", "graphNodeId"});
      read(table, query, [&](const SqliteRow& row) {
        GpuEvent event;
        if (!read_common(row, event)) return;
        event.kernel = all_.names.intern(name_at(row.integer(6) ? row.integer(6) : row.integer(7)));
        if (row.integer(8)) ++in_graphs_;
        all_.events.push_back(event);
      });
    }
    if (in_graphs_ > 0)
      run_.notes.push_back({format_count(in_graphs_) + " kernels ran in CUDA graphs",
                            "their instructions' names are those of the graph: profile with "
                            "--xla_gpu_enable_command_buffer= (empty)"});
  }

  void read_copies() {
    const auto places = tables_.memory_places();
    const auto kinds = tables_.copy_kinds();
    const auto look_up = [](const auto& table, std::optional<std::int64_t> id, auto otherwise) {
      const auto found = id ? table.find(*id) : table.end();
      return found == table.end() ? otherwise : found->second;
    };
    bool any = false;
    for (const char* name : kCopyTables)
      for (const std::string& table : tables_.versions_of(name)) {
        any = true;
        std::vector<std::string> lacks;
        const bool between = std::string_view(name).ends_with("2");
        (void)tables_.select(table, {"bytes", "copyKind", "srcKind", "dstKind"}, &lacks);
        const std::string columns =
            tables_.select(table, {"start", "end", "deviceId", "streamId", "correlationId",
                                   "globalPid", "bytes", "copyKind", "srcKind", "dstKind"});
        note_lacks(table, lacks, "whether those copies are pinned, or how fast, is not known");
        read(table, columns, [&](const SqliteRow& row) {
          GpuEvent event;
          if (!read_common(row, event)) return;
          event.kind = GpuEvent::Kind::kCopy;
          event.bytes = Bytes(std::max<std::int64_t>(0, row.integer(6).value_or(0)));
          event.copy = look_up(kinds, row.integer(7),
                               between ? CopyKind::kBetweenDevices : CopyKind::kOther);
          event.from = look_up(places, row.integer(8), MemoryPlace::kUnknown);
          event.to = look_up(places, row.integer(9), MemoryPlace::kUnknown);
          event.kernel = all_.names.intern("memcpy");
          all_.events.push_back(event);
        });
      }
    if (!any)
      run_.notes.push_back({"no table CUPTI_ACTIVITY_KIND_MEMCPY",
                            "nothing was copied across the link, or copies were not traced"});
  }

  void read_fills() {
    for (const std::string& table : tables_.versions_of("CUPTI_ACTIVITY_KIND_MEMSET"))
      read(table,
           tables_.select(table,
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"}),
           [&](const SqliteRow& row) {
             GpuEvent event;
             if (!read_common(row, event)) return;
             event.kind = GpuEvent::Kind::kFill;
             event.kernel = all_.names.intern("memset");
             all_.events.push_back(event);
           });
  }

  std::string_view name_at(std::optional<std::int64_t> id) const {
    const auto name = id ? strings_.find(*id) : strings_.end();
    return name == strings_.end() ? std::string_view() : name->second;
  }

  /// Processes number their devices from 0, each for itself.
  void name_devices() {
    std::map<std::int64_t, std::set<std::int64_t>> processes;
    for (std::size_t k = 0; k < all_.events.size(); ++k)
      processes[all_.events[k].device].insert(processes_[k]);
    const bool unique =
        std::ranges::all_of(processes, [](const auto& entry) { return entry.second.size() == 1; });
    if (unique) return;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers;
    for (const auto& [device, of_device] : processes)
      for (const std::int64_t process : of_device) numbers[{process, device}] = 0;
    std::int64_t next = 0;
    for (auto& [key, number] : numbers) number = next++;
    for (std::size_t k = 0; k < all_.events.size(); ++k)
      all_.events[k].device = numbers[{processes_[k], all_.events[k].device}];
  }

  const SqliteFile& file_;
  NsysTables tables_;
  GpuEvents all_;
  std::vector<std::int64_t> processes_;  ///< of each event
  std::map<std::int64_t, std::string> strings_;
  LaunchOwners owners_;
  std::int64_t in_graphs_ = 0;
  MeasuredRun run_;
};

}  // namespace

Result<MeasuredRun> read_nsys(const std::string& path) {
  const Result<SqliteFile> file = SqliteFile::open(path);
  if (!file.ok()) return file.error();
  return NsysReader(*file, path).run();
}

}  // namespace spillway
