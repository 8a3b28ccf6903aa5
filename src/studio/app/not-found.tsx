import { Page } from '../ui/page.tsx';

export function NotFound() {
  return (
    <Page title="Page not found">
      <p>
        This address is not a page of the studio. Start at the <a href="/studio/">overview</a>.
      </p>
    </Page>
  );
}
