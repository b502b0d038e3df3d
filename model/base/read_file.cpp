#include "model/base/read_file.h"

#include <zlib.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/base/regular_file.h"

namespace spillway {
namespace {

constexpr auto kMaxBytes = static_cast<std::size_t>(kMaxFileBytes.value());
/// Text of HLO packs 10 to 30 times. Beyond this ratio, and this size, it is no HLO but a bomb.
constexpr std::size_t kMaxRatio = 100;
constexpr std::size_t kHarmless = std::size_t{64} << 20;
constexpr const char* kOneProgram = "is this the optimised HLO of one program?";

bool is_gzip(const std::string& bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

/// Unpacks gzip piece by piece; memory follows what is really there.
class Unpacker {
 public:
  explicit Unpacker(const std::string& packed) : packed_(packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    usable_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  Result<std::string> run(const std::string& path) {
    int status = usable_ ? Z_OK : Z_MEM_ERROR;
    while (status == Z_OK && !too_large()) status = step();
    text_.resize(size_);
    if (text_.size() > kMaxBytes)
      return error_in_file(path, "unpacks to more than " + format_bytes(kMaxFileBytes),
                           kOneProgram);
    if (is_bomb())
      return error_in_file(path,
                           "unpacks to more than " + std::to_string(kMaxRatio) + " times its size",
                           kOneProgram);
    if (status == Z_STREAM_END) return std::move(text_);
    const std::string so_far = format_count(static_cast<std::int64_t>(size_)) + " bytes";
    return error_in_file(path, status == Z_BUF_ERROR
                                   ? "is cut: its gzip data ends after " + so_far
                                   : "is damaged: its gzip data is wrong after " + so_far);
  }

 private:
  bool is_bomb() const { return size_ > kHarmless && size_ / kMaxRatio > packed_.size(); }
  bool too_large() const { return size_ > kMaxBytes || is_bomb(); }

  int step() {
    if (size_ == text_.size())
      text_.resize(
          std::clamp(size_ * 2, std::min(packed_.size() * 8, kHarmless) + 4096, kMaxBytes + 1));
    const std::size_t room = std::min(text_.size() - size_, std::size_t{1} << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(text_.data() + size_);
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    size_ += room - stream_.avail_out;
    // Several gzip members behind one another are one text.
    const bool more = stream_.avail_in > 1 && stream_.next_in[0] == 0x1f;
    return status == Z_STREAM_END && more ? inflateReset(&stream_) : status;
  }

  const std::string& packed_;
  z_stream stream_{};
  bool usable_ = false;
  std::string text_;
  std::size_t size_ = 0;
};

}  // namespace

Result<std::shared_ptr<const std::string>> read_file(const std::string& path) {
  Result<std::string> bytes = read_regular_file(path, kMaxFileBytes, kOneProgram);
  if (bytes.ok() && is_gzip(*bytes)) {
    const std::string packed = std::move(bytes).value();
    bytes = Unpacker(packed).run(path);
  }
  if (!bytes.ok()) return bytes.error();
  if (bytes->empty()) return error_in_file(path, "is empty");
  return std::make_shared<const std::string>(std::move(bytes).value());
}

}  // namespace spillway
