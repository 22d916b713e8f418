//! Durable orders: how many a second a broker acknowledges.
