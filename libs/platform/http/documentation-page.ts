/** Loaded when somebody opens the page: to read its script and what it brings along is a quarter of a start. */
import type { RequestListener } from 'node:http';

import helmet from '@fastify/helmet';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';

/**
 * What a browser may load for the reference page: this server, and nothing else. The policy is what
 * keeps the page working offline, whatever a later version of the page would like to fetch.
 */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'", "'unsafe-inline'"],
  styleSrc: ["'self'", "'unsafe-inline'"],
  imgSrc: ["'self'", 'data:', 'blob:'],
  fontSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
  workerSrc: ["'self'", 'blob:'],
  baseUri: ["'self'"],
  frameAncestors: ["'none'"],
};

/**
 * Serves the page and its script, and nothing else. helmet guards this page only: its thirteen headers say things
 * about documents, and cost a JSON answer as much as everything else around it together.
 */
export async function documentationPage(routePrefix: `/${string}`, title: string): Promise<RequestListener> {
  const page = Fastify();
  await page.register(helmet, { contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } });
  await page.register(scalar, {
    routePrefix,
    configuration: {
      url: '/openapi.json',
      pageTitle: title,
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
      hideClientButton: true,
    },
  });
  await page.ready();
  return (request, response) => page.routing(request, response);
}
