import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { lazy, useLocation } from 'preact-iso';
import { useQuery } from '../../api/query.ts';
import { PORTAL } from '../../app/portal-address.ts';
import { portalToken } from '../../app/session-state.ts';
import { changeTheme, theme } from '../../app/theme.ts';
import { Time } from '../../ui/time.tsx';

const Endpoints = lazy(() => import('../endpoints/endpoints.tsx'));
const Endpoint = lazy(() => import('../endpoints/endpoint.tsx'));
const Messages = lazy(() => import('../messages/messages.tsx'));
const Message = lazy(() => import('../messages/message.tsx'));

takeToken();

/** Takes the token out of the address, so that it is neither in the history nor in a copied address. */
function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  portalToken.value = token || null;
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
}

/** Endpoints and messages of one application, for a person without an account here. */
export default function Portal() {
  const { query } = useLocation();
  return portalToken.value ? <Frame {...query} /> : <Ended />;
}

interface PartProps {
  endpoint?: string | undefined;
  message?: string | undefined;
  messages?: string | undefined;
}

function Frame({ endpoint, message, messages }: PartProps) {
  const { data } = useQuery('currentPortal', {});
  return (
    <div class="portal">
      <header class="top">
        <strong class="brand">{data ? data.application : 'Webhooks'}</strong>
        <nav class="actions tabs" aria-label="Parts of the portal">
          <Tab href={PORTAL} isCurrent={!message && !messages}>
            Endpoints
          </Tab>
          <Tab href={`${PORTAL}?messages=1`} isCurrent={Boolean(message ?? messages)}>
            Messages
          </Tab>
        </nav>
        <span class="identity">
          {data && (
            <>
              until <Time ms={data.expiresAt} />
            </>
          )}
        </span>
        <button type="button" onClick={changeTheme}>
          Theme: {theme.value}
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Part {...{ endpoint, message, messages }} />
      </main>
    </div>
  );
}

function Part({ endpoint, message, messages }: PartProps) {
  if (endpoint) return <Endpoint key={endpoint} id={endpoint} />;
  if (message) return <Message key={message} id={message} />;
  return messages ? <Messages /> : <Endpoints />;
}

function Tab({
  href,
  isCurrent,
  children,
}: {
  href: string;
  isCurrent: boolean;
  children: ComponentChildren;
}) {
  return (
    <a href={href} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** Shown for a link that has expired, and after a reload, which loses the token. */
function Ended() {
  useEffect(() => {
    document.title = 'Link needed';
  }, []);
  return (
    <main id="main" class="sign-in">
      <h1>This page needs a valid link</h1>
      <p>The link to this page has expired or was withdrawn, or the page was reloaded.</p>
      <p>Open the link again. If it no longer works, ask the sender of the link for a new one.</p>
    </main>
  );
}
