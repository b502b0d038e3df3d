#include "model/hlo/read_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "model/base/format.h"

namespace spillway {
namespace {

Error file_error(const std::string& path, std::string text, std::string advice = "") {
  return Error{ErrorKind::kInput, std::move(text), SourceRef{path, {}, {}}, "", std::move(advice)};
}

bool is_gzip(const std::string& bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

Result<std::string> read_bytes(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return file_error(path, "is a folder, not a file");
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    return file_error(path, std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes;
  const auto expected = std::filesystem::file_size(path, ignored);
  if (!ignored && expected <= static_cast<std::uintmax_t>(kMaxFileBytes.value()))
    bytes.reserve(static_cast<std::size_t>(expected) + 1);
  bool too_large = false;
  char buffer[1 << 16];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    bytes.append(buffer, n);
    if (static_cast<std::int64_t>(bytes.size()) > kMaxFileBytes.value()) {
      too_large = true;
      break;
    }
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return file_error(path, "cannot be read");
  if (too_large)
    return file_error(path, "is larger than " + format_bytes(kMaxFileBytes),
                      "is this the optimised HLO of one program?");
  return bytes;
}

Result<std::string> unpack(const std::string& path, const std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return file_error(path, "cannot be unpacked");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  text.resize(packed.size() * 8 + 4096);
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.total_out == text.size()) text.resize(text.size() * 2);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + stream.total_out);
    stream.avail_out = static_cast<uInt>(text.size() - stream.total_out);
    status = inflate(&stream, Z_NO_FLUSH);
    if (static_cast<std::int64_t>(stream.total_out) > kMaxFileBytes.value()) break;
    if (status == Z_STREAM_END && stream.avail_in > 0 && stream.next_in[0] == 0x1f)
      status = inflateReset(&stream);  // several gzip members behind one another are one text
  }
  text.resize(stream.total_out);
  inflateEnd(&stream);
  if (static_cast<std::int64_t>(text.size()) > kMaxFileBytes.value())
    return file_error(path, "unpacks to more than " + format_bytes(kMaxFileBytes),
                      "is this the optimised HLO of one program?");
  if (status != Z_STREAM_END)
    return file_error(path, "is damaged or cut: its gzip data ends early after " +
                                format_count(static_cast<std::int64_t>(text.size())) + " bytes");
  return text;
}

}  // namespace

Result<std::shared_ptr<const std::string>> read_file(const std::string& path) {
  Result<std::string> bytes = read_bytes(path);
  if (!bytes.ok()) return bytes.error();
  if (is_gzip(*bytes)) {
    bytes = unpack(path, *bytes);
    if (!bytes.ok()) return bytes.error();
  }
  if (bytes->empty()) return file_error(path, "is empty");
  return std::make_shared<const std::string>(std::move(bytes).value());
}

}  // namespace spillway
