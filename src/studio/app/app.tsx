import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router } from 'preact-iso';
import { exec } from 'preact-iso/router';
import { Failure, Loading } from '../ui/states.tsx';
import { foreignNamespace } from './namespace.ts';
import { NotFound } from './not-found.tsx';
import { IS_PORTAL, PORTAL } from './portal-address.ts';
import { restoreSession } from './session.ts';
import { session } from './session-state.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

// Each screen is a file of its own, so that the first one shown needs little code.
const Overview = lazy(() => import('../screens/overview/overview.tsx'));
const Deliveries = lazy(() => import('../screens/deliveries/deliveries.tsx'));
const Delivery = lazy(() => import('../screens/deliveries/delivery.tsx'));
const Runs = lazy(() => import('../screens/runs/runs.tsx'));
const Run = lazy(() => import('../screens/runs/run.tsx'));
const Inbox = lazy(() => import('../screens/inbox/inbox.tsx'));
const Plugins = lazy(() => import('../screens/plugins/plugins.tsx'));
const Plugin = lazy(() => import('../screens/plugins/plugin.tsx'));
const Sources = lazy(() => import('../screens/sources/sources.tsx'));
const Webhooks = lazy(() => import('../screens/webhooks/webhooks.tsx'));
const Queues = lazy(() => import('../screens/queues/queues.tsx'));
const Queue = lazy(() => import('../screens/queues/queue.tsx'));
const QueueItem = lazy(() => import('../screens/queues/queue-item.tsx'));
const Schedules = lazy(() => import('../screens/schedules/schedules.tsx'));
const Jobs = lazy(() => import('../screens/jobs/jobs.tsx'));
const Hosts = lazy(() => import('../screens/hosts/hosts.tsx'));
const Access = lazy(() => import('../screens/access/access.tsx'));
const Logs = lazy(() => import('../screens/logs/logs.tsx'));
const Events = lazy(() => import('../screens/events/events.tsx'));
const Trace = lazy(() => import('../screens/traces/trace.tsx'));
const Audit = lazy(() => import('../screens/audit/audit.tsx'));
const Endpoints = lazy(() => import('../screens/endpoints/endpoints.tsx'));
const Endpoint = lazy(() => import('../screens/endpoints/endpoint.tsx'));
const Messages = lazy(() => import('../screens/messages/messages.tsx'));
const Message = lazy(() => import('../screens/messages/message.tsx'));
const Alerts = lazy(() => import('../screens/alerts/alerts.tsx'));
const Alert = lazy(() => import('../screens/alerts/alert.tsx'));
const Secrets = lazy(() => import('../screens/secrets/secrets.tsx'));
const Connections = lazy(() => import('../screens/connections/connections.tsx'));
const Portal = lazy(() => import('../screens/portal/portal.tsx'));

/** Component of each screen by the pattern of its path. */
const SCREENS = {
  '/studio/': Overview,
  '/studio/deliveries': Deliveries,
  '/studio/deliveries/:webhookId': Delivery,
  '/studio/runs': Runs,
  '/studio/runs/:runId': Run,
  '/studio/inbox': Inbox,
  '/studio/plugins': Plugins,
  '/studio/plugins/:pluginId': Plugin,
  '/studio/webhooks': Webhooks,
  '/studio/sources': Sources,
  '/studio/queues': Queues,
  '/studio/queues/:queue': Queue,
  '/studio/queues/:queue/:id': QueueItem,
  '/studio/schedules': Schedules,
  '/studio/jobs': Jobs,
  '/studio/hosts': Hosts,
  '/studio/access': Access,
  '/studio/logs': Logs,
  '/studio/events': Events,
  '/studio/traces/:traceId': Trace,
  '/studio/audit': Audit,
  '/studio/endpoints': Endpoints,
  '/studio/endpoints/:id': Endpoint,
  '/studio/messages': Messages,
  '/studio/messages/:id': Message,
  '/studio/alerts': Alerts,
  '/studio/alerts/:id': Alert,
  '/studio/secrets': Secrets,
  '/studio/connections': Connections,
};

export function App() {
  return IS_PORTAL ? <PortalApp /> : <StudioApp />;
}

/** The portal of an application: no session, no frame, and no route to another screen. */
function PortalApp() {
  return (
    <LocationProvider scope={PORTAL}>
      <ErrorBoundary>
        <Portal />
      </ErrorBoundary>
    </LocationProvider>
  );
}

function StudioApp() {
  const [error, setError] = useState<Error>();
  useEffect(() => {
    restoreSession().catch(setError);
    // The screen loads at the same time as the session.
    const screen = Object.entries(SCREENS).find(([path]) => exec(location.pathname, path));
    void screen?.[1].preload();
  }, []);
  if (error) return <Failure error={error} onRetry={() => location.reload()} />;
  if (session.value === undefined) return <Loading what="your session" />;
  if (session.value === null) return <SignIn />;
  return (
    <LocationProvider scope="/studio">
      <ErrorBoundary>
        <Shell session={session.value}>
          <Router key={foreignNamespace() ?? ''}>
            {Object.entries(SCREENS).map(([path, component]) => (
              <Route key={path} path={path} component={component} />
            ))}
            <Route default component={NotFound} />
          </Router>
        </Shell>
      </ErrorBoundary>
    </LocationProvider>
  );
}
