export type Theme = 'system' | 'light' | 'dark';

const KEY = 'svc-studio-theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

/** Returns the theme that this browser keeps. `system` follows the setting of the operating system. */
export function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY) as Theme | null;
  return stored && THEMES.includes(stored) ? stored : 'system';
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
}

/** Shows and keeps a theme. */
export function showTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
