import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { StudioSession } from '../../contracts/studio.ts';
import { PaletteKey } from '../palette/palette-key.tsx';
import { NamespaceSwitch } from './namespace-switch.tsx';
import { NAVIGATION } from './navigation.ts';
import { signOut } from './session.ts';
import { changeTheme, theme } from './theme.ts';

/** Frame of all screens: navigation, identity, theme. */
export function Shell({ session, children }: { session: StudioSession; children: ComponentChildren }) {
  const { path, query } = useLocation();
  const screen = screenOf(path, query);
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const lastScreen = useRef(screen);
  useEffect(() => {
    setOpen(false);
    // The element that had the focus is gone with the last screen. Without this, Tab would begin above the navigation.
    // The form for a new object takes the focus itself.
    if (lastScreen.current !== screen && query.new === undefined) main.current?.focus();
    lastScreen.current = screen;
  }, [screen]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <button type="button" class="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Menu
        </button>
        <a class="brand" href="/studio/">
          svc
        </a>
        <NamespaceSwitch session={session} />
        <PaletteKey />
        <ThemeButton />
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <nav class={isOpen ? 'side open' : 'side'} aria-label="Screens">
        {NAVIGATION.map(({ title, items }) => (
          <section key={title}>
            <h2>{title}</h2>
            <ul>
              {items.map((item) => (
                <li key={item.path}>
                  <a href={item.path} aria-current={isCurrent(item.path, path) ? 'page' : undefined}>
                    {item.label}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

/** Returns a key of the screen. At some paths, the query selects one of several screens. */
function screenOf(path: string, query: Record<string, string>): string {
  const { setup, pluginId, event, instanceId, view, name } = query;
  if (path === '/studio/alerts') return JSON.stringify([path, view]);
  if (path === '/studio/connections' || path === '/studio/sources') return JSON.stringify([path, name]);
  if (path !== '/studio/webhooks') return path;
  // A choice in the set-up keeps the focus on its field.
  return JSON.stringify(setup ? [path, 'setup'] : [path, pluginId, event, instanceId]);
}

function isCurrent(item: string, path: string): boolean {
  if (item === '/studio/') return path === '/studio/' || path === '/studio';
  return path === item || path.startsWith(`${item}/`);
}

function ThemeButton() {
  return (
    <button type="button" onClick={changeTheme}>
      Theme: {theme.value}
    </button>
  );
}
