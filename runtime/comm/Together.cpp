#include "runtime/comm/Together.h"

#include "runtime/io/Digest.h"

#include <algorithm>

namespace wg::runtime {

Status Together::compare(std::string_view text, const std::string &what) const {
  if (!group_)
    return {};
  const std::string own = digestOf(text);
  Result<std::vector<char>> all = gather(std::vector<char>(own.begin(), own.end()));
  if (!all.ok())
    return all.take();
  for (size_t i = 1; i < size(); ++i)
    if (std::string_view texts(all->data(), all->size());
        texts.substr(0, own.size()) != texts.substr(i * own.size(), own.size()))
      return valueError("rank " + std::to_string(i) + " " + what + " than rank 0",
                        "call it with the same on all ranks");
  return {};
}

Status Together::agree(Status own, const std::string &what) const {
  if (!group_)
    return own;
  Result<std::vector<char>> all = gather(std::vector<char>{own.ok() ? '\0' : '\1'});
  if (!own.ok())
    return own;
  if (!all.ok())
    return all.take();
  std::string who;
  for (size_t i = 0; i < all->size(); ++i)
    if ((*all)[i])
      who += (who.empty() ? "rank " : ", rank ") + std::to_string(i);
  if (who.empty())
    return {};
  return Failure{.kind = ErrorKind::io, .message = who + " could not " + what, .remedy = "see what it says"};
}

} // namespace wg::runtime
