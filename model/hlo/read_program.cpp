#include "model/hlo/read_program.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "model/base/read_file.h"
#include "model/hlo/dump_facts.h"
#include "model/hlo/proto_reader.h"
#include "model/hlo/text_reader.h"
#include "model/program/validate.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

enum class DumpForm { kNone, kProto, kText };

struct Candidate {
  std::string path;
  DumpForm form = DumpForm::kNone;
  int likely = 0;  ///< how much the name says that it is the training step
  std::uintmax_t size = 0;
};

/// How a dump writes an optimised module, by its file's name.
DumpForm form_of(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with("after_optimizations.txt") || name.ends_with("after_optimizations.hlo.txt"))
    return DumpForm::kText;
  return name.ends_with("after_optimizations.hlo.pb") ? DumpForm::kProto : DumpForm::kNone;
}

/// jit_train_step, then jit_step, then the rest.
int likeliness(const std::string& name) {
  if (name.find("step") == std::string::npos) return 0;
  return name.find("train") == std::string::npos ? 1 : 2;
}

struct Pick {
  std::string path;
  std::size_t modules = 1;  ///< there were to pick from
};

/// The optimised module of a dump folder that is most likely the training step: text before proto,
/// by its name, and of equals the largest.
Result<Pick> pick_training_step(const std::string& folder) {
  std::vector<Candidate> candidates;
  std::set<std::string> modules;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const DumpForm form = form_of(name);
    std::error_code unknown;
    if (form == DumpForm::kNone || !at->is_regular_file(unknown)) continue;
    const std::uintmax_t size = at->file_size(unknown);
    candidates.push_back({at->path().string(), form, likeliness(name), unknown ? 0 : size});
    modules.insert(module_prefix(name));
  }
  if (failed) return error_in_file(folder, "cannot be listed: " + failed.message());
  if (candidates.empty())
    return error_in_file(folder, "holds no *after_optimizations.txt or .hlo.pb",
                         "dump with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"");
  const auto is_less = [](const Candidate& a, const Candidate& b) {
    if (a.form != b.form) return a.form < b.form;
    if (a.likely != b.likely) return a.likely < b.likely;
    return a.size != b.size ? a.size < b.size : a.path > b.path;
  };
  return Pick{std::ranges::max_element(candidates, is_less)->path, modules.size()};
}

}  // namespace

Result<Program> read_program(const std::string& path) {
  Pick pick{path};
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    const Result<Pick> picked = pick_training_step(path);
    if (!picked.ok()) return picked.error();
    pick = *picked;
  }
  const std::string& file = pick.path;
  const auto content = read_file(file);
  if (!content.ok()) return content.error();
  Result<Program> read = hlo::looks_like_proto(**content, file)
                             ? hlo::read_hlo_proto(*content, file)
                             : hlo::read_hlo_text(*content, file);
  if (!read.ok()) return read;
  Program program = std::move(read).value();
  program.modules_in_folder = pick.modules;
  if (auto unsound = validate(program)) return *std::move(unsound);
  return program;
}

}  // namespace spillway
