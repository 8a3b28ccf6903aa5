import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { StudioSession } from '../../contracts/studio.ts';
import { PaletteKey } from '../palette/palette-key.tsx';
import { NamespaceSwitch } from './namespace-switch.tsx';
import { NAVIGATION } from './navigation.ts';
import { signOut } from './session.ts';
import { nextTheme, showTheme, storedTheme } from './theme.ts';

/** Frame of all screens: navigation, identity, theme. */
export function Shell({ session, children }: { session: StudioSession; children: ComponentChildren }) {
  const { path } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const lastPath = useRef(path);
  useEffect(() => {
    setOpen(false);
    // The element that had the focus is gone with the last screen. Without this, Tab would begin above the navigation.
    if (lastPath.current !== path) main.current?.focus();
    lastPath.current = path;
  }, [path]);
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

function isCurrent(item: string, path: string): boolean {
  if (item === '/studio/') return path === '/studio/' || path === '/studio';
  return path === item || path.startsWith(`${item}/`);
}

function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  const change = () => {
    const next = nextTheme(theme);
    showTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" onClick={change}>
      Theme: {theme}
    </button>
  );
}
