import { Page } from '../ui/page.tsx';

/** Screens that later versions may have. */
export const RESERVED = ['endpoints', 'messages', 'alerts', 'connections'];

export function Reserved() {
  return (
    <Page title="Not part of this version">
      <p>
        This version of svc has no such screen. See what it has in the navigation, or start at the{' '}
        <a href="/studio/">overview</a>.
      </p>
    </Page>
  );
}
