// Plays a program in a Wayland session whose window fills the screen and becomes small again: fill,
// shrink.
#include <sys/mman.h>
#include <unistd.h>
#include <wayland-client.h>
#include <xdg-shell-client-protocol.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "test/desktops/stdin_words.h"

namespace {

constexpr int kSide = 64;  // pixels of four bytes

struct Film {
  wl_compositor* compositor = nullptr;
  wl_shm* memory = nullptr;
  xdg_wm_base* shell = nullptr;
  wl_surface* surface = nullptr;
  xdg_toplevel* window = nullptr;
  bool configured = false;
};

void add_global(void* data, wl_registry* registry, uint32_t name, const char* interface, uint32_t) {
  auto* film = static_cast<Film*>(data);
  const std::string_view type = interface;
  const auto bind = [&](const wl_interface& one) {
    return wl_registry_bind(registry, name, &one, 1);
  };
  if (type == wl_compositor_interface.name)
    film->compositor = static_cast<wl_compositor*>(bind(wl_compositor_interface));
  if (type == wl_shm_interface.name) film->memory = static_cast<wl_shm*>(bind(wl_shm_interface));
  if (type == xdg_wm_base_interface.name)
    film->shell = static_cast<xdg_wm_base*>(bind(xdg_wm_base_interface));
}

wl_buffer* new_picture(wl_shm* memory) {
  constexpr int kBytes = kSide * kSide * 4;
  const int pixels = memfd_create("film", MFD_CLOEXEC);
  if (ftruncate(pixels, kBytes) != 0) return nullptr;
  wl_shm_pool* pool = wl_shm_create_pool(memory, pixels, kBytes);
  wl_buffer* picture =
      wl_shm_pool_create_buffer(pool, 0, kSide, kSide, kSide * 4, WL_SHM_FORMAT_XRGB8888);
  wl_shm_pool_destroy(pool);
  close(pixels);
  return picture;
}

const xdg_wm_base_listener kShell = {
    .ping = [](void*, xdg_wm_base* shell, uint32_t serial) { xdg_wm_base_pong(shell, serial); }};
const xdg_surface_listener kSurface = {
    .configure = [](void* data, xdg_surface* surface, uint32_t serial) {
      auto* film = static_cast<Film*>(data);
      xdg_surface_ack_configure(surface, serial);
      if (film->configured) return wl_surface_commit(film->surface);
      film->configured = true;
      wl_surface_attach(film->surface, new_picture(film->memory), 0, 0);
      wl_surface_commit(film->surface);
    }};
const xdg_toplevel_listener kWindow = {
    .configure = [](void*, xdg_toplevel*, int32_t, int32_t, wl_array*) {},
    .close = [](void*, xdg_toplevel*) {},
    .configure_bounds = nullptr,
    .wm_capabilities = nullptr};

bool open_window(wl_display* display, Film* film) {
  if (film->compositor == nullptr || film->memory == nullptr || film->shell == nullptr)
    return false;
  xdg_wm_base_add_listener(film->shell, &kShell, film);
  film->surface = wl_compositor_create_surface(film->compositor);
  xdg_surface* surface = xdg_wm_base_get_xdg_surface(film->shell, film->surface);
  xdg_surface_add_listener(surface, &kSurface, film);
  film->window = xdg_surface_get_toplevel(surface);
  xdg_toplevel_add_listener(film->window, &kWindow, film);
  wl_surface_commit(film->surface);
  while (!film->configured)
    if (wl_display_roundtrip(display) < 0) return false;
  return wl_display_roundtrip(display) >= 0;
}

}  // namespace

int main() {
  wl_display* display = wl_display_connect(nullptr);
  if (display == nullptr) {
    std::cerr << "film: cannot connect to $WAYLAND_DISPLAY\n";
    return 1;
  }
  Film film;
  const wl_registry_listener listener = {.global = add_global,
                                         .global_remove = [](void*, wl_registry*, uint32_t) {}};
  wl_registry_add_listener(wl_display_get_registry(display), &listener, &film);
  wl_display_roundtrip(display);
  if (!open_window(display, &film)) {
    std::cerr << "film: the compositor shows no window\n";
    return 1;
  }
  while (sublet::test::play_word([&](const std::string& word) {
    if (word == "fill")
      xdg_toplevel_set_fullscreen(film.window, nullptr);
    else if (word == "shrink")
      xdg_toplevel_unset_fullscreen(film.window);
    else
      return false;
    // The answer is to be acknowledged, too.
    return wl_display_roundtrip(display) >= 0 && wl_display_roundtrip(display) >= 0;
  })) {
  }
  wl_display_disconnect(display);
  return 0;
}
