#include "runtime/comm/Together.h"

#include "runtime/io/Digest.h"

#include <algorithm>
#include <array>

namespace wg::runtime {

Status Together::begin(std::string_view text, const std::string &what) const {
  if (!group_)
    return {};
  if (Status status = group_->begin(options_); !status.ok())
    return status;
  return compare(text, what);
}

Status Together::compare(std::string_view text, const std::string &what) const {
  if (!group_)
    return {};
  const std::string own = digestOf(text);
  Result<std::vector<char>> all = gather(std::vector<char>(own.begin(), own.end()));
  if (!all.ok())
    return all.take();
  std::string_view texts(all->data(), all->size());
  for (size_t i = 1; i < size(); ++i)
    if (texts.substr(0, own.size()) != texts.substr(i * own.size(), own.size()))
      return valueError("rank " + std::to_string(i) + " " + what + " than rank 0",
                        "call it with the same on all ranks");
  return {};
}

Status Together::agree(Status own, const std::string &what, bool *allKnow) const {
  if (allKnow)
    *allKnow = true;
  if (!group_)
    return own;
  using Said = std::array<char, 400>; // empty: it has not failed
  Said mine{};
  if (!own.ok()) {
    std::string text = own.failure().message.empty() ? "it failed" : own.failure().message;
    text.resize(std::min(text.size(), mine.size() - 1));
    std::ranges::copy(text, mine.begin());
  }
  Result<std::vector<Said>> all = gather(std::vector<Said>{mine});
  if (!all.ok() && allKnow)
    *allKnow = false;
  if (!own.ok())
    return own;
  if (!all.ok())
    return all.take();
  std::string who;
  for (size_t i = 0; i < all->size(); ++i)
    if ((*all)[i][0])
      who += (who.empty() ? "rank " : "; rank ") + std::to_string(i) + " could not " + what + ": " + (*all)[i].data();
  if (who.empty())
    return {};
  return Failure{.kind = ErrorKind::io, .message = who};
}

} // namespace wg::runtime
