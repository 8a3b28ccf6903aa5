import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Connection } from '../../../contracts/connections.ts';
import { call, type Reply } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { AuthorizeLink } from './authorize-link.tsx';
import { ChangeSecret } from './change-secret.tsx';

type Link = Reply<'authorizeConnection'>;

/** One connection: its state after the authorization, its token, and what to do about an error. */
export function ConnectionScreen({ name }: { name: string }) {
  const params = { name: name as never };
  const { data, error, reload } = useQuery('getConnection', { params }, { everyMs: 3000 });
  const action = useAction();
  const canAdminister = useCan('admin');
  const [link, setLink] = useState<Link>();
  const isDone = link !== undefined && (data?.authorizedAt ?? 0) > (link.authorizedAt ?? 0);
  return (
    <Page
      title={name}
      command={`svc connections show ${shellWord(name)}`}
      actions={
        data && canAdminister && <Actions {...{ connection: data, action, reload, onLink: setLink }} />
      }
    >
      <Notice action={action} />
      {link && <AuthorizeLink link={link} isDone={isDone} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the connection" />}
      {data && <Details connection={data} />}
      {data && canAdminister && <ChangeSecret {...{ name, action }} onDone={reload} />}
    </Page>
  );
}

interface ActionsProps {
  connection: Connection;
  action: Action;
  reload: () => void;
  onLink: (link: Link) => void;
}

function Actions({ connection: { name, status }, action, reload, onLink }: ActionsProps) {
  const { route } = useLocation();
  const params = { name: name as never };
  const run = (change: () => Promise<string>) =>
    action.run(async () => {
      const message = await change();
      outdate('listConnections');
      reload();
      return message;
    });
  const atProvider = (isRevoked: boolean): string =>
    isRevoked ? '' : ' The provider was not told: remove the access in its settings.';
  const authorize = async (): Promise<string> => {
    onLink(await call('authorizeConnection', { params }));
    return '';
  };
  const refresh = async (): Promise<string> => {
    await call('refreshConnection', { params });
    return 'The access token is refreshed.';
  };
  const revoke = async (): Promise<string> => {
    const { revokedAtProvider } = await call('revokeConnection', { params });
    return `The tokens of ${name} are revoked.${atProvider(revokedAtProvider)}`;
  };
  const remove = async (): Promise<string> => {
    await call('deleteConnection', { params });
    route('/studio/connections');
    return '';
  };
  const hasTokens = status === 'active' || status === 'expired';
  return (
    <>
      <button type="button" class="primary" disabled={action.isBusy} onClick={() => run(authorize)}>
        {status === 'pending' ? 'Authorize' : 'Authorize again'}
      </button>
      <button type="button" disabled={action.isBusy || !hasTokens} onClick={() => run(refresh)}>
        Refresh
      </button>
      <ConfirmButton
        label="Revoke"
        question={`Revoke the tokens of ${name}? Plugins that use it fail until it is authorized again.`}
        isDisabled={action.isBusy || status === 'pending' || status === 'revoked'}
        onConfirmed={() => run(revoke)}
      />
      <ConfirmButton
        label="Delete"
        question={`Delete the connection ${name}? Its tokens are revoked, and plugins that use it fail.`}
        isDisabled={action.isBusy}
        onConfirmed={() => action.run(remove)}
      />
    </>
  );
}

const NEXT: Partial<Record<Connection['status'], string>> = {
  pending: 'It is not authorized yet. Make a link with “Authorize”, and open it.',
  expired: 'The access token has expired. Refresh it, or authorize the connection again.',
  failed: 'The provider no longer accepts the authorization. Authorize the connection again.',
  revoked: 'Its tokens are revoked. Authorize it again to use it.',
};

const time = (ms: number | null) => (ms === null ? null : <Time ms={ms} />);

function Details({ connection }: { connection: Connection }) {
  const { status, lastError, clientSecret, grantedScopes, scopes } = connection;
  return (
    <>
      <p class="verdict">
        <Status value={status} /> {NEXT[status]}
      </p>
      {lastError && (
        <p class="error">
          <Time ms={lastError.at} />: {lastError.message} ({lastError.code})
        </p>
      )}
      <Facts
        facts={[
          ['Provider', connection.provider ?? connection.issuer],
          ['Account', connection.account],
          ['Client id', <code key="client">{connection.clientId}</code>],
          ['Client secret', secretText(clientSecret)],
          ['Requested scopes', scopes.join(' ') || 'none'],
          ['Granted scopes', grantedScopes && (grantedScopes.join(' ') || 'none')],
          ['Authorized', time(connection.authorizedAt)],
          ['Token expires', time(connection.expiresAt)],
          ['Last refreshed', time(connection.lastRefreshedAt)],
          ['Next refresh', time(connection.nextRefreshAt)],
          ['Refresh token', connection.refreshes ? 'yes' : 'no'],
          ['Redirect URI', <code key="redirect">{connection.redirectUri}</code>],
          ['Authorization URL', connection.authorizationUrl],
          ['Token URL', connection.tokenUrl],
          ['Revocation URL', connection.revocationUrl],
        ]}
      />
    </>
  );
}

function secretText(clientSecret: Connection['clientSecret']): string {
  if (clientSecret === null) return 'none';
  return clientSecret === 'stored' ? 'stored' : `the secret ${clientSecret.secret}`;
}
