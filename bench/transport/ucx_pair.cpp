/// One end of a pair over UCX, tagged and nonblocking; see run.py. What it runs over is for
/// UCX_TLS, UCX_NET_DEVICES and the like to say. Waits by polling, which is UCX's fastest way.
///
/// ucx_pair <rank> <folder>

#include <ucp/api/ucp.h>

#include <memory>
#include <vector>

#include "bench/transport/pair.h"

namespace {

using pair_bench::kMostBytes;

void require(ucs_status_t status, const char* what) {
  if (status != UCS_OK) throw std::runtime_error(std::string(what) + ucs_status_string(status));
}

class UcxLink {
 public:
  UcxLink(int rank, const std::string& folder) {
    ucp_params_t features = {};
    features.field_mask = UCP_PARAM_FIELD_FEATURES;
    features.features = UCP_FEATURE_TAG;
    require(ucp_init(&features, nullptr, &context_), "ucp_init: ");
    ucp_worker_params_t threads = {};
    threads.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    threads.thread_mode = UCS_THREAD_MODE_SINGLE;
    require(ucp_worker_create(context_, &threads, &worker_), "ucp_worker_create: ");
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    require(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address: ");
    const std::string mine(reinterpret_cast<const char*>(address), length);
    ucp_worker_release_address(worker_, address);
    const std::string other = pair_bench::swap_words(folder, rank, mine);
    ucp_ep_params_t peer = {};
    peer.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    peer.address = reinterpret_cast<const ucp_address_t*>(other.data());
    require(ucp_ep_create(worker_, &peer, &endpoint_), "ucp_ep_create: ");
  }

  std::span<std::byte> outgoing() { return outgoing_; }

  void transfer(const pair_bench::Transfer& what, const pair_bench::Look& look) {
    const ucp_request_param_t plain = {};
    void* received = nullptr;
    void* sent = nullptr;
    ++tag_;
    if (what.receives) {
      received = ucp_tag_recv_nbx(worker_, landing_.data(), what.bytes, tag_, ~0UL, &plain);
    }
    if (what.sends) {
      sent = ucp_tag_send_nbx(endpoint_, outgoing_.data(), what.bytes, tag_, &plain);
    }
    wait(received);
    if (what.receives) look({landing_.data(), what.bytes});
    wait(sent);
  }

 private:
  void wait(void* request) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) require(UCS_PTR_STATUS(request), "transfer: ");
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      ucp_worker_progress(worker_);
    }
    ucp_request_free(request);
    require(status, "transfer: ");
  }

  ucp_context_h context_ = nullptr;  // all three go with the process
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<std::byte> outgoing_ = std::vector<std::byte>(kMostBytes);
  std::vector<std::byte> landing_ = std::vector<std::byte>(kMostBytes);
  ucp_tag_t tag_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const int rank = std::atoi(argv[1]);
    UcxLink link(rank, argv[2]);
    std::cout << "UCX " << ucp_get_version_string() << std::endl;
    return pair_bench::obey(link, rank);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
