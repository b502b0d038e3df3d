#include "model/base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "model/base/check.h"

namespace spillway {

std::string gzip(std::string_view text) {
  constexpr int kGzipHeader = 16, kMemoryLevel = 9;
  z_stream stream{};
  check(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipHeader + MAX_WBITS,
                     kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK,
        "zlib cannot pack");
  std::string packed;
  std::string piece(std::size_t{1} << 18, '\0');
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    // zlib counts in 32 bits.
    const std::size_t given =
        std::min<std::size_t>(text.size(), std::numeric_limits<uInt>::max() / 2);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
    check(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, "zlib failed to pack");
    packed.append(piece, 0, piece.size() - stream.avail_out);
    text.remove_prefix(given - stream.avail_in);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace spillway
