import { describe, expect, onTestFinished, test } from 'vitest';
import { atEnd, sharedByTests } from '../support/at-end.ts';
import { CLIENT_ID, CLIENT_SECRET, startOidcProvider } from '../support/oidc-provider.ts';
import { axeViolations, BROWSER_MISSING, startStudio, withFiles } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'sign-in with an identity provider', () => {
  const place = sharedByTests(async () => {
    const provider = await startOidcProvider();
    const oidc = {
      ...{ issuer: provider.issuer, clientId: CLIENT_ID, roleClaim: 'groups' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
      clientSecret: '${STUDIO_SECRET}',
      roles: {
        'svc-admins': { role: 'admin', namespaceId: '*' },
        'svc-viewers': { role: 'viewer', namespaceId: 'default' },
      },
    };
    const studio = await startStudio(
      { studio: { oidc } },
      withFiles({ '.env': `STUDIO_SECRET=${CLIENT_SECRET}\n` }),
    );
    atEnd(() => studio.close());
    provider.trust(`http://localhost:${new URL(studio.url).port}/studio/oidc/callback`);
    return { studio, provider };
  });

  /** Opens the studio, and signs in at the provider. */
  async function signIn(
    path: string,
    name: string,
    options: { theme?: 'light' | 'dark'; width?: number } = {},
  ) {
    const { studio, provider } = place();
    const opened = await studio.open(path, { isSignedIn: false, ...options });
    onTestFinished(() => opened.context.close());
    const { page } = opened;
    const button = page.getByRole('link', { name: `Sign in with ${new URL(provider.issuer).host}` });
    await button.focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Name').fill(name);
    await page.keyboard.press('Enter');
    const foreign = `request to ${provider.issuer}`;
    const ownProblems = () =>
      opened.problems.filter(
        (one) => !one.startsWith(foreign) && !one.includes('request to http://localhost'),
      );
    return { ...opened, ownProblems };
  }

  test('a person signs in by keyboard, returns to the screen that was asked for, and signs out', async () => {
    const { page, ownProblems } = await signIn('/studio/runs?status=failed', 'ada');
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/studio/runs?status=failed');
    expect(await page.getByLabel('Namespace').getAttribute('title')).toBe('Signed in as oidc:ada');
    await page.reload();
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
    const { items } = await place().studio.svc('tokens', 'list');
    expect(items).toContainEqual(expect.objectContaining({ hostId: 'oidc:ada' }));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
    expect(ownProblems()).toEqual([]);
  });

  test('a revoked session leads back to the sign-in', async () => {
    const { page } = await signIn('/studio/', 'eve');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    const { items } = await place().studio.svc('tokens', 'list');
    const { jti } = items.find(({ hostId }: { hostId: string }) => hostId === 'oidc:eve');
    await place().studio.svc('tokens', 'revoke', jti, '--yes');
    await page.goto(`${new URL(page.url()).origin}/studio/jobs`);
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor();
  });

  for (const theme of ['light', 'dark'] as const) {
    test(`a person without a role reads why, in the ${theme} theme at 390 px`, async () => {
      const { page, ownProblems } = await signIn('/studio/', 'mallory', { theme, width: 390 });
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('you have no role here');
      await page.getByRole('link', { name: /^Sign in with / }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/studio/');
      expect(await axeViolations(page)).toEqual([]);
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect([overflow > 0, ownProblems()]).toEqual([false, []]);
    });
  }
});
