import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'svc-studio-theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

/** Theme of this browser. `system` follows the setting of the operating system. */
export const theme = signal<Theme>(storedTheme());

function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY) as Theme | null;
  return stored && THEMES.includes(stored) ? stored : 'system';
}

/** Shows and keeps the next theme. */
export function changeTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(KEY, theme.value);
  applyTheme();
}

export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}
