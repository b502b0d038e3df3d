#include "model/run/read_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "model/base/format.h"
#include "model/base/read_file.h"
#include "model/run/chrome_trace.h"
#include "model/run/nsys.h"
#include "model/run/pgle.h"
#include "model/run/sqlite_file.h"
#include "model/run/xplane.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormats =
    "readable are Nsight Systems exports (nsys export --type sqlite), .xplane.pb and "
    ".trace.json.gz of jax.profiler, and PGLE profiles (.pbtxt, .pb)";

std::string first_bytes(const std::string& path) {
  std::string bytes(16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// Every .xplane.pb below a folder; its folders are named by time.
std::vector<std::string> find_xplanes(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed))
    if (entry->path().string().ends_with(".xplane.pb")) found.push_back(entry->path().string());
  std::ranges::sort(found);
  return found;
}

MeasuredRun run_of(const ProfiledInstructions& profile, const std::string& path) {
  MeasuredRun run;
  run.format = RunFormat::kPgle;
  run.path = path;
  for (const auto& [name, us] : profile.cost_us) {
    MeasuredInstruction instruction;
    instruction.name = name;
    instruction.time = instruction.shortest = instruction.longest = Seconds(us * 1e-6);
    run.instructions.push_back(std::move(instruction));
  }
  std::ranges::stable_sort(run.instructions, std::ranges::greater{}, &MeasuredInstruction::time);
  run.read.push_back(format_count(static_cast<std::int64_t>(run.instructions.size())) +
                     " costs of instructions");
  run.notes.push_back(
      {"a PGLE profile has neither copies nor the step", "only instructions can be compared"});
  if (!profile.latency_us.empty())
    run.notes.push_back({format_count(static_cast<std::int64_t>(profile.latency_us.size())) +
                             " latencies between instructions",
                         "XLA passes them over, and so do we"});
  return run;
}

}  // namespace

Result<MeasuredRun> read_run(const std::string& path, std::string_view fingerprint) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const std::vector<std::string> found = find_xplanes(path);
    if (found.empty())
      return error_in_file(path, "no .xplane.pb in this folder or below", std::string(kFormats));
    Result<MeasuredRun> read = read_run(found.back());
    if (!read.ok() || found.size() == 1) return read;
    MeasuredRun run = std::move(read).value();
    run.notes.push_back({"the folder has " + std::to_string(found.size() - 1) +
                             " more files, of other runs or hosts",
                         "read is " + found.back()});
    return run;
  }
  if (fs::is_regular_file(path, failed) && SqliteFile::has_magic(first_bytes(path)))
    return read_nsys(path);
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep"))
    return error_in_file(path, "is a report of Nsight Systems, which only that program reads",
                         "export it: nsys export --type sqlite " + path);
  const auto bytes = read_file(path);
  if (!bytes.ok()) return bytes.error();
  const std::string_view content = **bytes;
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (content[first] == '{' || content[first] == '['))
    return parse_chrome_trace(content.substr(first), path);
  if (path.ends_with(".xplane.pb") || is_xplane(content)) return parse_xplane(content, path);
  const Result<ProfiledInstructions> profile = parse_pgle(content, path, fingerprint);
  if (profile.ok() && !profile->cost_us.empty()) {
    MeasuredRun run = run_of(*profile, path);
    run.is_modelled = is_modelled_profile(content);
    return run;
  }
  if (!profile.ok() && path.ends_with(".pbtxt")) return profile.error();
  return error_in_file(path, "is no profile of a run that is known", std::string(kFormats));
}

}  // namespace spillway
