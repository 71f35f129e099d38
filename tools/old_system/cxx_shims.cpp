// Small parts of libstdc++ that are newer than GCC 8's, in terms of what that one has. The names
// are those of the compiled code: its own headers declare these as members and as inline functions.
#include <cstdio>
#include <cstdlib>

namespace {

struct Exception {
  void* object;
};

}  // namespace

extern "C" {

// Of libpng and libjpeg, whose static code cannot reach another library's data from a module.
std::FILE* own_stderr = stderr;

[[noreturn]] void __cxa_throw_bad_array_new_length();

// Of GCC 8: a copy counts one more, the destructor one less.
void copy_exception(Exception*,
                    const Exception*) __asm__("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
void destroy_exception(Exception*) __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
void copy_runtime_error(void*, const void*) __asm__("_ZNSt13runtime_errorC2ERKS_");
void copy_logic_error(void*, const void*) __asm__("_ZNSt11logic_errorC2ERKS_");

void add_reference(Exception*) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void release(Exception*) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
[[noreturn]] void throw_bad_length() __asm__("_ZSt28__throw_bad_array_new_lengthv");
[[noreturn]] void assertion_failed(const char*, int, const char*,
                                   const char*) __asm__("_ZSt21__glibcxx_assert_failPKciS0_S0_");
void move_runtime_error(void*, void*) __asm__("_ZNSt13runtime_errorC2EOS_");
void move_whole_runtime_error(void*, void*) __asm__("_ZNSt13runtime_errorC1EOS_");
void move_logic_error(void*, void*) __asm__("_ZNSt11logic_errorC2EOS_");
void move_whole_logic_error(void*, void*) __asm__("_ZNSt11logic_errorC1EOS_");

void add_reference(Exception* self) {
  Exception copy;
  copy_exception(&copy, self);
}
void release(Exception* self) {
  destroy_exception(self);
  self->object = nullptr;
}

void throw_bad_length() { __cxa_throw_bad_array_new_length(); }

void assertion_failed(const char* file, int line, const char* function, const char* condition) {
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  std::abort();
}

void move_runtime_error(void* to, void* from) { copy_runtime_error(to, from); }
void move_whole_runtime_error(void* to, void* from) { copy_runtime_error(to, from); }
void move_logic_error(void* to, void* from) { copy_logic_error(to, from); }
void move_whole_logic_error(void* to, void* from) { copy_logic_error(to, from); }

}  // extern "C"
