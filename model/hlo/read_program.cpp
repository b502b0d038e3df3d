#include "model/hlo/read_program.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "model/hlo/read_file.h"
#include "model/hlo/text_reader.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  std::string path;
  bool named_step = false;  ///< the name says "step": jit_train_step, jit_step, …
  std::uintmax_t size = 0;
};

bool is_optimised_text(const std::string& name) {
  return name.ends_with("after_optimizations.txt") ||
         name.ends_with("after_optimizations.txt.gz") ||
         name.ends_with("after_optimizations.hlo.txt") ||
         name.ends_with("after_optimizations.hlo.txt.gz");
}

/// The optimised module of a dump folder that is most likely the training step: one whose name says
/// "step" before others, a larger one before a smaller.
Result<std::string> pick_training_step(const std::string& folder) {
  std::vector<Candidate> candidates;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!is_optimised_text(name)) continue;
    std::error_code ignored;
    candidates.push_back(
        {entry.path().string(), name.find("step") != std::string::npos, entry.file_size(ignored)});
  }
  if (failed)
    return Error{
        ErrorKind::kInput, "cannot be listed: " + failed.message(), {folder, {}, {}}, "", ""};
  if (candidates.empty())
    return Error{ErrorKind::kInput,
                 "holds no *after_optimizations.txt",
                 {folder, {}, {}},
                 "",
                 "dump with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\""};
  const auto best =
      std::ranges::max_element(candidates, [](const Candidate& a, const Candidate& b) {
        if (a.named_step != b.named_step) return b.named_step;
        return a.size != b.size ? a.size < b.size : a.path > b.path;
      });
  return best->path;
}

}  // namespace

Result<Program> read_program(const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const Result<std::string> picked = pick_training_step(path);
    if (!picked.ok()) return picked.error();
    file = *picked;
  }
  const auto text = read_file(file);
  if (!text.ok()) return text.error();
  return hlo::read_hlo_text(*text, file);
}

}  // namespace spillway
