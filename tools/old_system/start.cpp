// Programs of newer systems leave it to the C library to call their constructors. An older one has
// them call these themselves: by a function that it is given, as newer ones still allow.
extern "C" {

using Main = int (*)(int, char**, char**);
using Part = void (*)(int, char**, char**);

extern Part __preinit_array_start[] __attribute__((visibility("hidden")));
extern Part __preinit_array_end[] __attribute__((visibility("hidden")));
extern Part __init_array_start[] __attribute__((visibility("hidden")));
extern Part __init_array_end[] __attribute__((visibility("hidden")));
void _init();

static void construct(int count, char** words, char** environment) {
  for (Part* part = __preinit_array_start; part != __preinit_array_end; ++part) {
    (*part)(count, words, environment);
  }
  _init();
  for (Part* part = __init_array_start; part != __init_array_end; ++part) {
    (*part)(count, words, environment);
  }
}

int system_start(Main main, int count, char** words, void (*init)(int, char**, char**),
                 void (*fini)(), void (*at_exit)(), void* stack);
#if defined(__x86_64__)
__asm__(".symver system_start, __libc_start_main@GLIBC_2.2.5");
#else
__asm__(".symver system_start, __libc_start_main@GLIBC_2.17");
#endif

__attribute__((visibility("hidden"))) int __libc_start_main(Main main, int count, char** words,
                                                            void (*)(int, char**, char**),
                                                            void (*)(), void (*at_exit)(),
                                                            void* stack) {
  return system_start(main, count, words, construct, nullptr, at_exit, stack);
}

}  // extern "C"
