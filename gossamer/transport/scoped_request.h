#pragma once
/// ScopedRequest: a request that is released with it.

#include <utility>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// After it nothing touches the request's memory any more, whatever has been thrown meanwhile.
class ScopedRequest {
 public:
  ScopedRequest(Transport& transport, Request request) : transport_(transport), request_(request) {}
  ~ScopedRequest() { transport_.release(request_); }
  ScopedRequest(ScopedRequest&& other) noexcept
      : transport_(other.transport_), request_(other.take()) {}
  ScopedRequest& operator=(ScopedRequest&&) = delete;

  Request get() const { return request_; }
  /// It is somebody else's now.
  Request take() { return std::exchange(request_, 0); }

 private:
  Transport& transport_;
  Request request_;
};

}  // namespace gossamer
